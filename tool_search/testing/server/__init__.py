"""The stand-in provider server."""
