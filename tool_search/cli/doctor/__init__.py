"""The commands that look after a bot: `doctor` and `replay`."""
