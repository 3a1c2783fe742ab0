"""What a conversation has found, and the order in which tools are declared."""
