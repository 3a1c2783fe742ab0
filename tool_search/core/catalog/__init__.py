"""Tools and catalogs, and their names."""
