"""Tool definitions, their names, and the catalog of them."""
