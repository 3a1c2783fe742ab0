"""Regular expressions in a separate process with a timeout.

A pattern such as (a+)+$ can run for years on forty characters, and Python can stop neither
the match nor the thread it is in. A process can be ended.
"""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import asyncio
import json
import sys

from tool_search.demo.toolbox.arguments import require_length, require_within

_MAX_PATTERN_CHARS = 500
_MAX_TEXT_CHARS = 20_000
_SECONDS = 5.0
_PROGRAM = """
import json, re, sys
job = json.loads(sys.stdin.read())
flags = re.IGNORECASE if job["ignore_case"] else 0
try:
    pattern = re.compile(job["pattern"], flags | re.MULTILINE)
    if job["replacement"] is None:
        found = []
        for match in pattern.finditer(job["text"]):
            if len(found) == job["limit"]:
                break
            found.append({"match": match[0], "start": match.start(), "groups": match.groups()})
        answer = {"result": found}
    else:
        text, count = pattern.subn(job["replacement"], job["text"])
        answer = {"result": {"text": text, "replaced": count}}
except (re.error, IndexError, OverflowError, RecursionError) as error:
    answer = {"error": str(error)}
print(json.dumps(answer))
"""


async def regex_find(
    pattern: str, text: str, ignore_case: bool = False, limit: int = 100
) -> list[dict[str, object]]:
    """Find all matches of a regular expression. 用正则表达式查找所有匹配。

    Args:
        pattern: A Python regular expression, 正则表达式; at most 500 characters.
        text: The text to search, 文本; at most 20000 characters.
        ignore_case: True if upper and lower case are one, 忽略大小写.
        limit: The most matches to give, 最多匹配数; 1 to 1000.

    Returns:
        For each match its text, where it starts, and its groups.
    """
    require_within("limit", limit, 1, 1000)
    result = await _run(pattern, text, ignore_case=ignore_case, limit=limit)
    if not isinstance(result, list):
        raise ValueError(f"pattern {pattern!r} gave no matches to list")  # noqa: TRY004 - a bad value
    return result


async def regex_replace(
    pattern: str, replacement: str, text: str, ignore_case: bool = False
) -> dict[str, object]:
    r"""Replace all matches of a regular expression. 用正则表达式替换文本。

    Args:
        pattern: A Python regular expression, 正则表达式; at most 500 characters.
        replacement: What replaces each match, 替换文本; "\1" is the first group.
        text: The text to change, 文本; at most 20000 characters.
        ignore_case: True if upper and lower case are one, 忽略大小写.

    Returns:
        The new text, and how many matches were replaced.
    """
    require_length("replacement", replacement, 0, _MAX_PATTERN_CHARS)
    result = await _run(pattern, text, ignore_case=ignore_case, replacement=replacement)
    if not isinstance(result, dict):
        raise ValueError(f"pattern {pattern!r} gave no text")  # noqa: TRY004 - a bad value
    return result


async def _run(
    pattern: str, text: str, *, ignore_case: bool, replacement: str | None = None, limit: int = 0
) -> object:
    require_length("pattern", pattern, 1, _MAX_PATTERN_CHARS)
    require_length("text", text, 0, _MAX_TEXT_CHARS)
    job = {
        "pattern": pattern,
        "text": text,
        "ignore_case": ignore_case,
        "replacement": replacement,
        "limit": limit,
    }
    pipe = asyncio.subprocess.PIPE
    arguments = (sys.executable, "-I", "-S", "-c", _PROGRAM)
    process = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(_SECONDS):
            output, problem = await process.communicate(json.dumps(job).encode())
    except TimeoutError:
        raise ValueError(
            f"pattern {pattern!r} ran longer than {_SECONDS:g} s; avoid nested repeats like (a+)+"
        ) from None
    finally:
        # Also when the conversation is cancelled.
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ValueError(f"pattern {pattern!r} ended its process: {problem.decode()[-200:]}")
    answer = json.loads(output)
    if "error" in answer:
        raise ValueError(f"pattern {pattern!r} cannot be used: {answer['error']}")
    return answer["result"]


TOOLS = (regex_find, regex_replace)
