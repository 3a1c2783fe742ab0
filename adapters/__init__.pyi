from tool_search.adapters.providers import build_provider as build_provider
