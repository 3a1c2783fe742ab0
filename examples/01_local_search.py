"""Find tools without any model.

Run: python examples/01_local_search.py
"""

from tool_search import Tool, build_index

TOOLS = [
    Tool(name="get_forecast", description="Weather forecast for a city. 查询城市天气预报。"),
    Tool(name="send_email", description="Send an email to one or more recipients."),
    Tool(name="createGitHubIssue", description="Open an issue in a repository."),
]

index = build_index(TOOLS)
for query in (
    "will it rain in Paris tomorrow, what is the weather",
    "发一封 email",
    "天气",
    "github issues",
):
    found = index.search(query, limit=2)
    print(f"{query!r}: {[(match.name, round(match.score, 2)) for match in found.matches]}")
