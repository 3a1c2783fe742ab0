"""Rules and replies of OpenAI's Responses API."""
