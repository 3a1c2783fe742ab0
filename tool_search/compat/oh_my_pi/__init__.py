"""oh-my-pi's tool discovery: tool, ranking, settings and terminal output."""
