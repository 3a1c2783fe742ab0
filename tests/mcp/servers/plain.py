"""A stdio server without an SDK, of the handshake, that does what a test says.

python plain.py '{"tools": [...], "calls": {...}, ...}': each key of the JSON is an answer or a
misbehaviour; see `Server`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}}


class Server:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.tools = list(plan.get("tools", []))
        self.lists = 0
        self.resources = list(plan.get("resources", []))
        self.resource_lists = 0

    def send(self, content: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **content}) + "\n")
        sys.stdout.flush()

    def list_tools(self, cursor: str | None) -> dict[str, Any]:
        self.lists += 1
        if self.lists > self.plan.get("lists_before_silence", 1_000_000):
            time.sleep(600)
        if count := self.plan.get("many"):
            first = int(cursor or 0)
            size = self.plan.get("page", count)
            tools = [
                {"name": f"tool_{n}", "description": f"Tool {n}.", "inputSchema": SCHEMA}
                for n in range(first, min(first + size, count))
            ]
            rest = {"nextCursor": str(first + size)} if first + size < count else {}
            return {"tools": tools, **rest}
        tools = [
            tool if not isinstance(tool, str) else {"name": tool, "inputSchema": SCHEMA}
            for tool in self.tools
        ]
        if size := self.plan.get("long_description"):
            tools.append({"name": "long", "description": "x" * size, "inputSchema": SCHEMA})
        return {"tools": tools}

    def call(self, number: Any, params: dict[str, Any]) -> None:
        name, given = params["name"], params.get("arguments") or {}
        if name == "pid":
            self.text(number, str(os.getpid()))
        elif name == "die":
            sys.stderr.write(given.get("value", ""))
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "cut_off":
            sys.stdout.write('{"jsonrpc": "2.0", "id": ')
            sys.stdout.flush()
            os._exit(3)
        elif name == "flood":
            sys.stdout.write('{"jsonrpc": "2.0", "x": "')
            for _ in range(100):
                sys.stdout.write("y" * 1_000_000)
            sys.stdout.write('"}\n')
            sys.stdout.flush()
        elif name == "more_tools":
            self.tools = [*self.tools, *given["names"]]
            self.text(number, "listed")
            for _ in range(given.get("times", 1)):
                self.send({"method": "notifications/tools/list_changed"})
        elif name == "lists":
            self.text(number, str(self.lists))
        elif name in ("resource_lists", "add_resource"):
            self.about_resources(number, given)
        elif name in ("raw", "rows"):
            self.send({"id": number, "result": self.result(given)})
        elif name == "refuse":
            self.send({"id": number, "error": {"code": -32050, "message": "not today"}})
        elif name != "silent":
            self.text(number, f"{name}: {json.dumps(given)}")

    def result(self, given: dict[str, Any]) -> dict[str, Any]:
        if "value" in given:
            found: dict[str, Any] = json.loads(given["value"])
            return found
        rows = [{"a": n, "b": str(n)} for n in range(given["count"])]
        return {"content": [], "structuredContent": {"rows": rows}}

    def about_resources(self, number: Any, given: dict[str, Any]) -> None:
        if "uri" in given:
            self.resources.append(given["uri"])
            if self.plan.get("reports"):
                self.send({"method": "notifications/resources/list_changed"})
        self.text(number, str(self.resource_lists))

    def resource(self, number: Any, method: str, params: dict[str, Any]) -> None:
        if method == "resources/list":
            self.resource_lists += 1
            listed = [{"uri": uri, "name": uri} for uri in self.resources]
            self.send({"id": number, "result": {"resources": listed}})
        elif method == "resources/templates/list" and self.plan.get("no_templates"):
            self.send({"id": number, "error": {"code": -32601, "message": "no such method"}})
        elif method == "resources/templates/list":
            self.send({"id": number, "result": {"resourceTemplates": []}})
        elif params["uri"] in self.resources and method != "resources/read":
            self.send({"id": number, "result": {}})
        elif params["uri"] in self.resources:
            content = {"uri": params["uri"], "text": params["uri"]}
            self.send({"id": number, "result": {"contents": [content]}})
        else:
            self.send({"id": number, "error": {"code": -32002, "message": "no such resource"}})

    def text(self, number: Any, text: str) -> None:
        self.send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})

    def answer(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method == "notifications/cancelled" and (path := self.plan.get("cancelled")):
            with open(path, "a") as file:
                file.write(f"{message['params']['requestId']}\n")
        if number is None or method is None:
            return
        if method == "initialize":
            reports_tools = not self.plan.get("unreported")
            capabilities: dict[str, Any] = {"tools": {"listChanged": reports_tools}}
            if self.resources:
                reports = bool(self.plan.get("reports"))
                capabilities["resources"] = {"subscribe": True, "listChanged": reports}
            info = {"name": "plain", "version": "1"}
            version = self.plan.get("protocol", "2025-06-18")
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            self.send({"id": number, "result": result})
        elif method == "tools/list":
            self.send(
                {
                    "id": number,
                    "result": self.list_tools(
                        message["params"].get("cursor") if message.get("params") else None
                    ),
                }
            )
        elif method.startswith("resources/") and self.resources:
            self.resource(number, method, message.get("params") or {})
        elif method == "tools/call":
            self.call(number, message["params"])
        else:
            self.send({"id": number, "error": {"code": -32601, "message": "no such method"}})


def main() -> None:
    plan = json.loads(sys.argv[1])
    if (marker := plan.get("fail_once")) and not os.path.exists(marker):
        with open(marker, "w"):
            sys.exit("refusing to start: the password is missing")
    if plan.get("exit"):
        sys.exit(plan["exit"])
    if plan.get("never_answers"):
        time.sleep(600)
    if plan.get("prints"):
        print(plan["prints"], flush=True)
    server = Server(plan)
    for line in sys.stdin:
        server.answer(json.loads(line))


main()
