"""oh-my-pi: its search tool, ranking, settings and terminal block."""
