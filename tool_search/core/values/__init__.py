"""Text and values from users, servers and models, read safely."""
