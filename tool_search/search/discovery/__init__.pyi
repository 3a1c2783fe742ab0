from tool_search.core.discovery.modes import ModeDecision as ModeDecision
from tool_search.core.discovery.modes import resolve_mode as resolve_mode
from tool_search.search.discovery.search_tool import ToolSearchTool as ToolSearchTool
from tool_search.core.discovery.state import Discovery as Discovery
from tool_search.core.discovery.state import DiscoveryState as DiscoveryState
