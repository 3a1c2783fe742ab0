"""Write the reference pages of `docs/` from the code: command line, configuration, errors.

Run: python .ci/reference.py [--check]

With `--check` nothing is written, and the status is 1 if a page is not current.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
# The library of this checkout, whatever is installed.
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

from chinese_reference import chinese_configuration  # noqa: E402

_MADE = "<!-- Made by `make reference` from the code; edit the code instead. -->"
_COMMAND_LINE = (
    "`pip install 'tool-search-middleware[cli]'`, in a clone `pip install '.[cli]'`, installs the "
    "command `tool-search`; `python -m tool_search` is the same command. The status is 0, or 2 "
    "for wrong use or a wrong "
    "file, 1 for any other failure, and 130 after Ctrl-C. Results are on standard output, "
    "everything else is on standard error. What people read is in the language of `--language`, "
    "which may be before or after the command, or else of `LC_ALL`, `LC_MESSAGES` or `LANG`: "
    "Chinese, English or Russian. Errors of files and settings are English. "
    "The option `--install-completion` sets up completion of commands and options in the shell."
)
_JSON_OUTPUT = (
    "What commands print as JSON is a contract: keys are added, never renamed or removed, and a "
    "value keeps its type. It is the same in every language. Each command has a JSON Schema; the "
    "tests compare the output with it. Programs should ignore keys that they do not know."
)
_VALUES: Mapping[Any, str] = {str: "TEXT", Path: "FILE", int: "N", float: "X", list[str]: "NAME"}
_CONFIGURATION = (
    "The keys of `bot.yaml`, which `open_bot`, `load_config` and `tool-search chat --config` "
    "read. Every key is optional unless it says otherwise. An unknown key and a wrong value "
    "are errors that name the file, the line and the key. `tool_schema_mode` and "
    "`tool_search` may also be under `provider_settings`, as in AstrBot."
)
_PROXY = (
    "The keys of `proxy.yaml`, which `tool-search proxy --config` and `load_proxy_config` read. "
    "Every key is optional unless it says otherwise. An unknown key and a wrong value are errors "
    "that name the file, the line and the key. [The proxy](proxy.md) has an example."
)
# A validator sets these.
_DEFAULTS = {
    "providers[].api_key_env": "`ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, by `type`",
    "tool_search.search.engine": "`bm25`, or the preset's",
    "tool_search.search.min_relevance": "`0.1`, or 0 with a preset",
}
_ERRORS = (
    "Every error that this library raises is a `ToolSearchError`. A message says what is "
    "wrong, shows the value, and says what is allowed or what to do. Errors are English: "
    "they are for logs and engineers, never for a chat."
)


def pages() -> dict[str, str]:
    """Return the text of each page by its path in the repository."""
    return {
        "docs/command-line.md": command_line(),
        "docs/json-output.md": json_output(),
        "docs/configuration.md": configuration(),
        "docs/configuration.zh-CN.md": chinese_configuration(configuration()),
        "docs/proxy-configuration.md": proxy_configuration(),
        "docs/errors.md": errors(),
    }


# -- the command line ------------------------------------------------------------------------------


def command_line() -> str:
    """Return the page of commands and their options."""
    from tool_search.cli.application import COMMANDS  # noqa: PLC0415 - the other pages need no cli

    commands = {name: getattr(import_module(m), f) for name, (m, f) in COMMANDS.items()}
    lines = [
        "# Command line",
        "",
        _MADE,
        "",
        _COMMAND_LINE,
        "",
        "| command | purpose |",
        "|---|---|",
        *(
            f"| [`tool-search {name}`](#tool-search-{name}) | {_first(command.__doc__)} |"
            for name, command in commands.items()
        ),
    ]
    for name, command in commands.items():
        paragraphs = inspect.cleandoc(command.__doc__).replace("\n\n", "\f").replace("\n", " ")
        lines += ["", f"## tool-search {name}", "", paragraphs.replace("\f", "\n\n"), ""]
        lines += ["| option | value | meaning |", "|---|---|---|"]
        kinds = get_type_hints(command, include_extras=True)
        for parameter in inspect.signature(command).parameters.values():
            lines.append(_option(parameter, kinds[parameter.name]))
    return "\n".join(lines) + "\n"


def _first(text: str) -> str:
    return inspect.cleandoc(text).splitlines()[0]


def _option(parameter: inspect.Parameter, annotation: Any) -> str:
    """Return the row of an option, from its parameter of the command's function."""
    kind, option = _unwrapped(annotation)
    # In `Annotated`, typer holds the first name of an option as its default.
    names = (option.default, *(option.param_decls or ()))
    given = [each for each in names if isinstance(each, str)]
    name = given[0] if given else f"--{parameter.name.replace('_', '-')}"
    if type(option).__name__ == "ArgumentInfo":
        name = option.metavar
    name, _, negation = name.partition("/")
    notes = f"{option.help} `{negation}` turns it off." if negation else option.help
    if parameter.default is inspect.Parameter.empty:
        notes += " Required."
    elif parameter.default not in (None, False, ""):
        notes += f" Default: `{parameter.default}`."
    value = "" if kind is bool else f"`{option.metavar or _VALUES[kind]}`"
    return f"| `{name}` | {value} | {_cell(notes)} |"


def _unwrapped(annotation: Any) -> tuple[Any, Any]:
    """Return the plain type of an option, and typer's description of it."""
    # `Annotated[T, ...]`, or `Optional[Annotated[T, ...]]` on older versions of Python.
    for candidate in (annotation, *get_args(annotation)):
        if hasattr(candidate, "__metadata__"):
            kind, option = candidate.__origin__, candidate.__metadata__[0]
            inner = [each for each in get_args(kind) if each is not type(None)]
            return (inner[0] if inner else kind), option
    raise TypeError(f"{annotation!r} is not an option")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# -- the output as JSON ----------------------------------------------------------------------------


def json_output() -> str:
    """Return the page of the keys of each command's JSON, from the schemas in docs/json."""
    lines = ["# JSON output", "", _MADE, "", _JSON_OUTPUT]
    for path in sorted((ROOT / "docs" / "json").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        lines += ["", f"## {path.stem}", "", f"{schema['title']} ([schema](json/{path.name}))."]
        lines += ["", "| key | type | always | meaning |", "|---|---|---|---|"]
        lines += _json_rows(schema, "")
    return "\n".join(lines) + "\n"


def _json_rows(schema: Mapping[str, Any], place: str) -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        inner = _join(place, key)
        kinds = value["type"]
        kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
        always = "yes" if key in schema.get("required", ()) else ""
        yield f"| `{inner}` | {kind} | {always} | {_cell(value.get('description', ''))} |"
        yield from _json_rows(value, inner)
        yield from _json_rows(value.get("items", {}), f"{inner}[]")


# -- the configuration -----------------------------------------------------------------------------


def configuration() -> str:
    """Return the page of every key of `bot.yaml`."""
    from tool_search.config.bot import BotConfig  # noqa: PLC0415

    text = _settings(BotConfig, "Configuration", _CONFIGURATION)
    # The one key of the section that a file has at its top level.
    return text.replace("`tool_search.tool_schema_mode`", "`tool_schema_mode`")


def proxy_configuration() -> str:
    """Return the page of every key of `proxy.yaml`, without those of a bot's `tool_search`."""
    from tool_search.serving.proxy.settings import ProxyConfig  # noqa: PLC0415

    text = _settings(ProxyConfig, "Configuration of the proxy", _PROXY, but="tool_search")
    return text.replace("[section](#tool_search)", "[section](configuration.md#tool_search)")


def _settings(root: Any, title: str, introduction: str, *, but: str | None = None) -> str:
    """Return the page of a settings class and its sections, but for one section."""
    schema = root.model_json_schema()
    classes = {cls.__name__: cls for cls in _classes(root)}
    lines = [f"# {title}", "", _MADE, "", introduction]
    for place, name in _sections(schema, root.__name__):
        if but is not None and f"{place}.".startswith(f"{but}."):
            continue
        cls = classes[name]
        lines += ["", f"## {f'`{place}`' if place else 'Top level'}", ""]
        lines += [_summary(cls), "", "| key | type | default | meaning |", "|---|---|---|---|"]
        described = _attributes(cls)
        section = schema["$defs"].get(name, schema)
        for key, value in section["properties"].items():
            inner = _join(place, key)
            default = _DEFAULTS.get(inner) or _default(
                value, required=key in section.get("required", ())
            )
            lines.append(f"| `{inner}` | {_type(value, inner)} | {default} | {described[key]} |")
    return "\n".join(lines) + "\n"


def _classes(cls: Any) -> Iterator[Any]:
    """Yield a settings class, and those of its sections."""
    yield cls
    for field in cls.model_fields.values():
        for inner in _inner(field.annotation):
            yield from _classes(inner)


def _inner(annotation: Any) -> Iterator[Any]:
    if hasattr(annotation, "model_fields"):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _inner(argument)


def _sections(schema: Mapping[str, Any], name: str, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place in the file and the class of each section, depth first."""
    yield place, name
    section = schema["$defs"].get(name, schema)
    for key, value in section["properties"].items():
        for option in (value, *value.get("anyOf", ())):
            inner, suffix = _reference(option)
            if inner:
                yield from _sections(schema, inner, _join(place, key + suffix))


def _reference(value: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the class of a value that is a section, a list of them or a mapping to them."""
    for holder, suffix in (
        (value, ""),
        (value.get("items") or {}, "[]"),
        (value.get("additionalProperties") or {}, ".NAME"),
    ):
        if isinstance(holder, Mapping) and "$ref" in holder:
            return str(holder["$ref"]).rpartition("/")[2], suffix
    return None, ""


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _type(value: Mapping[str, Any], place: str) -> str:
    name, suffix = _reference(value)
    if name:
        many = {"": "section", "[]": "list of sections", ".NAME": "sections by name"}[suffix]
        anchor = re.sub(r"[^a-z0-9_-]", "", (place + suffix).lower())
        return f"[{many}](#{anchor})"
    if "anyOf" in value:
        return " or ".join(_type(option, place) for option in value["anyOf"])
    if "enum" in value:
        # An empty code span is none in Markdown.
        return ", ".join(f"`{option}`" if option else '`""`' for option in value["enum"])
    kind = value.get("type", "any value")
    if kind == "array":
        inner = _type(value.get("items") or {}, place)
        return f"list of {inner}" if inner.endswith("`") else f"list of {inner}s"
    if kind == "string" and place in _allowed():
        return ", ".join(f"`{option}`" for option in _allowed()[place])
    words = {"string": "text", "boolean": "`true` or `false`", "null": "`null`"}
    words |= {"object": "mapping", "number": "number", "integer": "whole number"}
    low, above = value.get("minimum"), value.get("exclusiveMinimum")
    if low is not None and "maximum" not in value:
        return f"{words[kind]}, at least {low:,}"
    if low is None and above is None:
        return words.get(kind, kind)
    begins = f"above {above:,}, at most" if low is None else f"{low:,} to"
    return f"{words[kind]}, {begins} {value['maximum']:,}"


def _allowed() -> dict[str, tuple[str, ...]]:
    """Return the values of keys that a table in the code allows."""
    from tool_search.search.build import ENGINES, PRESETS  # noqa: PLC0415 - loads the engines

    section = "tool_search.search"
    return {f"{section}.engine": tuple(ENGINES), f"{section}.preset": tuple(PRESETS)}


def _default(value: Mapping[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    if _reference(value)[0] or "default" not in value:
        return ""
    default = value["default"]
    written = {True: "true", False: "false", None: "null", "": '""'}
    simple = default is None or isinstance(default, bool | str)
    return f"`{written.get(default, default) if simple else default}`"


def _summary(cls: Any) -> str:
    return inspect.cleandoc(cls.__doc__).split("\n\n")[0].replace("\n", " ")


def _attributes(cls: Any) -> dict[str, str]:
    """Return the descriptions in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        block = re.search(r"^Attributes:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(block[1])) if block else ():
            key, _, description = entry.partition(": ")
            found[key.strip()] = _cell(" ".join(description.split()))
    return found


# -- the errors ------------------------------------------------------------------------------------


def errors() -> str:
    """Return the page of every public error class."""
    classes = _error_classes()
    tree = "\n".join(_tree("ToolSearchError", classes, 0))
    lines = [
        "# Errors",
        "",
        _MADE,
        "",
        _ERRORS,
        "",
        tree,
    ]
    for name, (module, _, doc) in classes.items():
        lines += ["", f"## {name}", "", f"`{module}.{name}`", "", _prose(doc)]
    return "\n".join(lines) + "\n"


def _prose(doc: str) -> str:
    """Return a docstring with its list of attributes as a table."""
    head, _, attributes = doc.partition("\n\nAttributes:\n")
    head = re.sub(r"\n(?=\S)", " ", head)
    if not attributes:
        return head
    rows = []
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(attributes).strip("\n")):
        key, _, description = entry.partition(": ")
        rows.append(f"| `{key}` | {_cell(' '.join(description.split()))} |")
    return "\n".join([head, "", "| attribute | meaning |", "|---|---|", *rows])


def _error_classes() -> dict[str, tuple[str, str, str]]:
    """Return module, base and docstring of each public error class, the tree in order."""
    found: dict[str, tuple[str, str, str]] = {}
    for top, package in (("tool_search", "tool_search"), ("adapters", "tool_search.adapters")):
        for path in sorted((ROOT / top).rglob("*.py")):
            module = ".".join((package, *path.relative_to(ROOT / top).with_suffix("").parts))
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.bases:
                    doc = ast.get_docstring(node) or ""
                    found.setdefault(node.name, (module, ast.unparse(node.bases[0]), doc))
    ordered: dict[str, tuple[str, str, str]] = {}
    _collect("ToolSearchError", found, ordered)
    return ordered


def _collect(
    name: str,
    found: Mapping[str, tuple[str, str, str]],
    ordered: dict[str, tuple[str, str, str]],
) -> None:
    ordered[name] = found[name]
    for other, (_, base, _) in found.items():
        if base == name:
            _collect(other, found, ordered)


def _tree(name: str, classes: Mapping[str, tuple[str, str, str]], depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}- [`{name}`](#{name.lower()}): {_first(classes[name][2])}"
    for other, (_, base, _) in classes.items():
        if base == name:
            yield from _tree(other, classes, depth + 1)


def main() -> int:
    """Write the pages, or compare them with those that are there."""
    stale = []
    for name, text in pages().items():
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
    if not stale or "--check" not in sys.argv[1:]:
        return 0
    print(f"not current: {', '.join(stale)}; run: make reference")
    return 1


if __name__ == "__main__":
    sys.exit(main())
