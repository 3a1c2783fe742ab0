"""What serves others over HTTP or MCP: the gateway, the proxy, and the page that watches them."""
