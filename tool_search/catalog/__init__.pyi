from tool_search.catalog.catalog import CorePolicy as CorePolicy
from tool_search.catalog.catalog import ToolCatalog as ToolCatalog
from tool_search.catalog.tokens import estimate_tokens as estimate_tokens
from tool_search.catalog.tool import Tool as Tool
