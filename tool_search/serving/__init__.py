"""Servers over HTTP and MCP: the gateway, the proxy, and the page that watches them."""
