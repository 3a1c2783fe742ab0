"""Models of the stand-in server."""
