"""Rules and replies of OpenAI's Chat Completions API."""
