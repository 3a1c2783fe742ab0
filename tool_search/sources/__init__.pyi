from tool_search.sources.base import ServerStatus as ServerStatus
from tool_search.sources.base import SourceChange as SourceChange
from tool_search.sources.base import ToolSource as ToolSource
from tool_search.sources.combined import CombinedTools as CombinedTools
