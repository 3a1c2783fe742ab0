"""Values, names and definitions on the wire, in any dialect."""
