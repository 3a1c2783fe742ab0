from tool_search.adapters.mcp.source import MCPSource as MCPSource
