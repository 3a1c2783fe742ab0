"""The wire formats of clients, one module each, read and written with few changes."""
