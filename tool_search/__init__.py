"""Tool search for chatbots: the model finds its tools when it needs them."""
