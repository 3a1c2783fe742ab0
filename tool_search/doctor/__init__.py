"""An examination of a bot's configuration: what would stop it, or cost too much."""
