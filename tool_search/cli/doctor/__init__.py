"""The commands `doctor` and `replay`: what would stop a bot, or cost too much."""
