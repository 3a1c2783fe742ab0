"""A plugin with many tools, and one that comes late."""

import json
from pathlib import Path

from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.provider import ProviderRequest
from astrbot.api.star import Context, Star
from astrbot.core.agent.tool import FunctionTool

TOOLS = json.loads((Path(__file__).parent / "tools.json").read_text(encoding="utf-8"))


class ToolboxTool(FunctionTool):
    """Says what was called."""

    async def call(self, context, **arguments):
        """Its name and its arguments."""
        return f"plugin {self.name} {json.dumps(arguments)}"


class Toolbox(Star):
    """The plugin."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        context.add_llm_tools(*(ToolboxTool(**tool) for tool in TOOLS))

    @filter.llm_tool(name="greet_person")
    async def greet(self, event: AstrMessageEvent, name: str):
        """Greets a person by name.

        Args:
            name(string): Who is greeted.
        """
        return f"decorated greet_person {name}"

    @filter.on_llm_request(priority=-2_000_000)
    async def late(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Adds a tool after all other plugins, if the user asks for one."""
        if req.func_tool and "with a late tool" in (req.prompt or ""):
            req.func_tool.add_tool(
                ToolboxTool(
                    name="a_late_tool",
                    description="Comes late.",
                    parameters={"type": "object", "properties": {}},
                )
            )
