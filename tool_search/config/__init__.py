"""Settings of a bot: sections, defaults and loading."""
