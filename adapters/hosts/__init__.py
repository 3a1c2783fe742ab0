"""Tool search inside loops that people already have: bots, frameworks, proxies."""
