from tool_search.core.discoveries import ModeDecision as ModeDecision
from tool_search.core.discoveries import resolve_mode as resolve_mode
from tool_search.search.discovery.search_tool import ToolSearchTool as ToolSearchTool
from tool_search.core.discoveries import Discovery as Discovery
from tool_search.core.discoveries import DiscoveryState as DiscoveryState
