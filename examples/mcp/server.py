"""An MCP server of three tools, over standard input and output, on the official SDK."""

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # SDK 1.x
    from mcp.server.fastmcp import FastMCP as MCPServer

PRICES = {"tea": 3.5, "coffee": 4.25}


def find_price(product: str) -> str:
    """Find the price of a product."""
    price = PRICES.get(product)
    return f"{product}: {price:.2f}" if price is not None else f"there is no {product}"


def list_products() -> list[str]:
    """List everything that the shop sells."""
    return sorted(PRICES)


def opening_hours(day: str) -> str:
    """Tell when the shop is open on a day of the week."""
    return "closed" if day.lower() == "sunday" else "9 to 18"


if __name__ == "__main__":
    server = MCPServer("shop")
    for tool in (find_price, list_products, opening_hours):
        server.add_tool(tool)
    server.run()
