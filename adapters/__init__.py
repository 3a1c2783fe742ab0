"""One file a provider or framework; each writes plans in its dialect."""
