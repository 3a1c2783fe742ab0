"""Draw the chat in terminals: 80 and 120 columns, dark and light, in each language.

Run: python docs/pictures/chat.py            draw every picture anew; needs tmux
     python docs/pictures/chat.py --check    fail if a committed picture is stale

`tool-search chat --stand-in` runs in tmux, and the picture is what tmux has on its screen.
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(ROOT), str(FOLDER)]

from terminal import COLUMNS, THEMES, svg, write_or_check  # noqa: E402

import tool_search.cli  # noqa: E402
from tool_search.cli.start import stand_in  # noqa: E402
from tool_search.i18n import LANGUAGES  # noqa: E402
from tool_search.testing import ModelCall, ModelReply, ScriptedModel  # noqa: E402

_ROWS = 90
_MOST_S = 60.0
_BOT = """\
tool_schema_mode: tool_search
store: {type: memory}
tools:
  - tool_search.sources.toolbox.quantities
  - tool_search.sources.toolbox.everyday
providers: [{id: claude, type: anthropic, model: claude-sonnet-4-6, api_key_env: null}]
"""
_TABLE = "| km | mi |\n|---:|---:|\n| 10 | 6.21 |\n| 42.195 | 26.22 |\n\n"
_CODE = "```python\nmiles = kilometres / 1.609344\n```\n"


class Talk(NamedTuple):
    """A conversation in one language.

    Attributes:
        question: The person's question.
        query: The model's search.
        answer: The model's answer, as Markdown.
    """

    question: str
    query: str
    answer: str


TALKS: Mapping[str, Talk] = {
    "en-US": Talk(
        "How many miles are 42.195 km?",
        "convert kilometres to miles",
        f"42.195 km are **26.22 miles**, the length of a marathon. The way that the runners of the "
        f"first modern race took was about two kilometres shorter.\n\n{_TABLE}"
        f"- the length is *fixed* since 1921\n- divide by `1.609344` to convert others\n\n{_CODE}",
    ),
    "zh-CN": Talk(
        "42.195 公里是多少英里？",
        "公里换算成英里",
        f"42.195 公里等于 **26.22 英里**，正是马拉松的全程。第一届现代奥运会的选手所跑的路线"
        f"大约短了两公里，后来的比赛才逐渐采用了今天的距离。\n\n{_TABLE}"
        f"- 这一距离自 1921 年起*固定不变*\n- 其他数值除以 `1.609344` 即可换算\n\n{_CODE}",
    ),
    "ru-RU": Talk(
        "Сколько миль в 42,195 км?",
        "перевести километры в мили",
        f"42,195 км это **26,22 мили**, длина марафона. Дорога, по которой бежали участники первой "
        f"современной Олимпиады, была примерно на два километра короче.\n\n{_TABLE}"
        f"- длина *не меняется* с 1921 года\n- другие числа делят на `1.609344`\n\n{_CODE}",
    ),
}


def captured(language: str, columns: int) -> str:
    """Return the screen of a chat, with the codes of its colours."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "bot.yaml").write_text(_BOT, encoding="utf-8")
        # A folder that cannot be written: the picture names no path of this machine.
        variables = {
            "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": "/dev/null/none"
        }  # fmt: skip
        command = ["env", "-C", folder, *(f"{key}={value}" for key, value in variables.items())]
        command += [sys.executable, str(Path(__file__).resolve()), "--talk", language]
        screen = _Screen(columns, shlex.join(command))
        try:
            lines = (TALKS[language].question, "/tools", "/cost", "/model")
            for count, line in enumerate(lines, start=1):
                screen.wait_for_prompt(count)
                screen.type(line)
            screen.wait_for_prompt(len(lines) + 1)
            return screen.shown(with_colours=True)
        finally:
            screen.close()


def talk(language: str) -> None:
    """Run `tool-search chat --stand-in` with a model that says what `TALKS` has."""
    said = TALKS[language]
    call = ModelCall(
        name="convert_length",
        arguments={"value": 42.195, "from_unit": "km", "to_unit": "mile"},
    )
    search = ModelCall(name="tool_search", arguments={"query": said.query})
    replies = [
        ModelReply(calls=(search,)), ModelReply(calls=(call,)), ModelReply(text=said.answer),
    ]  # fmt: skip
    stand_in.KeywordModel = lambda: ScriptedModel(replies)
    sys.argv[1:] = ["chat", "--stand-in", "--language", language]
    tool_search.cli.main()


class _Screen:
    """A program in tmux.

    Args:
        columns: The width of the terminal.
        command: The program, for a shell.
    """

    def __init__(self, columns: int, command: str) -> None:
        self._name = f"picture-{columns}"
        size = ("-x", str(columns), "-y", str(_ROWS))
        self._tmux("new-session", "-d", "-s", self._name, *size, command)

    def type(self, line: str) -> None:
        """Type a line."""
        self._tmux("send-keys", "-t", self._name, "-l", line)
        self._tmux("send-keys", "-t", self._name, "Enter")

    def wait_for_prompt(self, count: int) -> None:
        """Wait until there are so many prompts, the last of them in the last line."""
        deadline = time.monotonic() + _MOST_S
        while True:
            lines = self.shown().rstrip("\n").split("\n")
            if sum(line.startswith(">") for line in lines) == count and lines[-1] in (">", "> "):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("\n".join(lines))
            time.sleep(0.1)

    def shown(self, *, with_colours: bool = False) -> str:
        """Return what is on the screen."""
        colours = ("-e",) if with_colours else ()
        return self._tmux("capture-pane", "-p", *colours, "-t", self._name)

    def close(self) -> None:
        """End the program."""
        self._tmux("kill-session", "-t", self._name)

    @staticmethod
    def _tmux(*arguments: str) -> str:
        done = subprocess.run(  # noqa: S603
            # A server and settings of its own: not those of who runs this.
            [str(shutil.which("tmux")), "-L", "pictures", "-f", "/dev/null", *arguments],
            capture_output=True, check=True, encoding="utf-8",
        )  # fmt: skip
        return done.stdout


def pictures() -> dict[Path, str]:
    """Return every picture by its file."""
    drawn = {}
    for language in LANGUAGES:
        for columns in COLUMNS:
            screen = captured(language, columns).rstrip()
            for theme in THEMES:
                console = Console(
                    record=True, width=columns, file=io.StringIO(), force_terminal=True,
                    highlight=False, color_system="truecolor", legacy_windows=False,
                )  # fmt: skip
                console.print(Text.from_ansi(screen), no_wrap=True, overflow="ignore", crop=False)
                path = FOLDER / f"chat-{language}-{columns}-{theme}.svg"
                drawn[path] = svg(console, "tool-search chat", columns, theme)
    return drawn


def main() -> None:
    """Draw the pictures, or check them."""
    if sys.argv[1:2] == ["--talk"]:
        talk(sys.argv[2])
        return
    if shutil.which("tmux") is None:
        sys.exit("the pictures of the chat need tmux; as root: apt-get install tmux")
    write_or_check(pictures())


if __name__ == "__main__":
    main()
