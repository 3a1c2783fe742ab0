"""Rules and replies of Anthropic's Messages API."""
