from tool_search.core.catalog.catalog import CorePolicy as CorePolicy
from tool_search.core.catalog.catalog import ToolCatalog as ToolCatalog
from tool_search.core.catalog.tool import estimate_tokens as estimate_tokens
from tool_search.core.catalog.tool import Tool as Tool
