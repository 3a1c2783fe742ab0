"""Attempts with other values, and with arguments in other places, than a rule seems to see."""

from __future__ import annotations

from typing import Any

from tests.security.attempts import PAY, READ, RUN, SEND, Attempts, allow, deny, server_tool

__all__ = ["TRIED"]

TRIED = Attempts()

# A glob of the operator's, and a value or a name that reads in two ways.
_GLOB = allow("mcp__mail__send(to=*@example.org)")
TRIED.works("glob", _GLOB, SEND, {"to": "bo@example.org"}, {"to": "bo@example.org", "text": "a\nb"})
TRIED.attack(
    "allowed glob",
    _GLOB,
    SEND,
    {
        "a line break": {"to": "eve@evil.example\nx@example.org"},
        "a carriage return": {"to": "eve@evil.example\rx@example.org"},
        "a null character": {"to": "eve@evil.example\x00@example.org"},
        "a line separator": {"to": "eve@evil.example\u2028@example.org"},
        "another case of the name": {"To": "bo@example.org"},
        "two cases of the name": {"to": "bo@example.org", "To": "eve@evil.example"},
        "a name in full width": {"to": "bo@example.org", "ｔｏ": "eve@evil.example"},
        "a name with an invisible character": {
            "to": "bo@example.org",
            "t\u200bo": "eve@evil.example",
        },
        "a name with a separator": {"to": "bo@example.org", "_to": "eve@evil.example"},
        "a copy in an object": {"to": "bo@example.org", "text": {"to": "eve@evil.example"}},
        "a copy in a list of objects": {
            "to": "bo@example.org",
            "text": [{"to": "eve@evil.example"}],
        },
        "a copy of another case, nested": {
            "to": "bo@example.org",
            "x": {"y": {"TO": "eve@evil.example"}},
        },
        "an object whose JSON fits": {"to": {"a": "eve@evil.example", "b": "@example.org"}},
        "an empty list": {"to": []},
        "a number": {"to": 5},
        "a value that is too long to be read": {"to": "a" * 30_000 + "@example.org"},
        "more copies than are looked at": {"to": "bo@example.org", "text": [{}] * 20_000},
    },
)
_NESTED = allow("mcp__mail__send(message.to=*@example.org)")
TRIED.works("nested", _NESTED, SEND, {"message": {"to": "bo@example.org"}})
TRIED.attack(
    "allowed nested argument",
    _NESTED,
    SEND,
    {
        "the name at the top": {"to": "bo@example.org"},
        "a dotted name beside it": {
            "message": {"to": "bo@example.org"},
            "message.to": "eve@evil.example",
        },
        "a second message": {"message": [{"to": "bo@example.org"}, {"to": "eve@evil.example"}]},
        "another place": {
            "text": {"message": {"to": "eve@evil.example"}},
            "message": {"to": "bo@example.org"},
        },
    },
)

# The server's schema chooses: which argument comes first, and what a missing one is.
_FIRST = {
    "type": "object",
    "properties": {"decoy": {}, "to": {}},
    "required": ["decoy"],
}
TRIED.attack(
    "argument that the schema chooses",
    allow("mcp__mail__send(bo@example.org)"),
    server_tool("send", "mail", schema=_FIRST),
    {
        "a decoy is required first": {"decoy": "bo@example.org", "to": "eve@evil.example"},
        "the right argument, unnamed": {"decoy": "x", "to": "bo@example.org"},
    },
)
TRIED.attack(
    "named argument that the schema lacks",
    allow("mcp__mail__send(to=bo@example.org)"),
    server_tool(
        "send", "mail", schema={"type": "object", "required": ["x"], "properties": {"x": {}}}
    ),
    {
        "the whole pattern as the first argument": {"x": "to=bo@example.org"},
    },
)
_TO_DEFAULTS: dict[str, dict[str, Any]] = {
    "of the argument": {"properties": {"to": {"default": "bo@example.org"}}},
    "behind a reference": {
        "properties": {"to": {"$ref": "#/$defs/to"}},
        "$defs": {"to": {"default": "bo@example.org"}},
    },
    "of everything": {"properties": {"to": {}}, "default": {"to": "bo@example.org"}},
    "in a branch": {"properties": {"to": {"anyOf": [{"default": "bo@example.org"}, {}]}}},
}
for _does, _schema in _TO_DEFAULTS.items():
    TRIED.attack(
        "default that a server declares",
        _GLOB,
        server_tool("send", "mail", schema={"type": "object", **_schema}),
        {_does: {}},
    )

# A number or a boolean that is denied, as the tool will read it.
_HUNDRED = deny("mcp__bank__pay(amount=100)")
TRIED.works("hundred", _HUNDRED, PAY, {"amount": 99}, {"amount": 1000}, {"amount": "10 0"})
TRIED.attack(
    "denied number",
    _HUNDRED,
    PAY,
    {
        does: {"amount": amount}
        for does, amount in {
            "plainly": 100,
            "a fraction": 100.0,
            "an exponent": 1e2,
            "a string": "100",
            "a string with spaces": " 100\n",
            "a string with zeros": "100.00",
            "a string with an exponent": "1e2",
            "a sign": "+100",
            "leading zeros": "00100",
            "full width": "１００",
            "Arabic digits": "١٠٠",
            "hexadecimal": "0x64",
            "octal": "0o144",
            "octal as C writes it": "0144",
            "binary": "0b1100100",
            "an underscore": "1_00",
            "an invisible character": "1\u200b00",
            "a list": [1, 100],
            "an object": {"value": 100},
            "JSON in a string": "[100]",
            "a very long fraction": "100." + "0" * 5_000,
        }.items()
    },
)
TRIED.attack(
    "denied large number",
    deny("mcp__bank__pay(amount=10000000000000000000)"),
    PAY,
    {
        "one that is the same as a double": {"amount": 10000000000000000001},
        "an exponent": {"amount": 1e19},
    },
)
TRIED.attack(
    "denied number that is a glob",
    deny("mcp__bank__pay(amount=1??)"),
    PAY,
    {
        "a fraction": {"amount": 150.0},
        "an exponent": {"amount": 1.5e2},
        "a string": {"amount": "1.5e2"},
    },
)
TRIED.attack(
    "denied switch",
    deny("mcp__bank__pay(force=true)"),
    PAY,
    {
        does: {"force": force}
        for does, force in {
            "plainly": True,
            "a number": 1,
            "a fraction": 1.0,
            "a word": "true",
            "a capital": "True",
            "yes": "yes",
            "on": " ON ",
            "a letter": "t",
        }.items()
    },
)
TRIED.attack(
    "allowed number",
    allow("mcp__bank__pay(amount=100)"),
    PAY,
    {
        does: {"amount": amount}
        for does, amount in {
            "a little more": 100.00000001,
            "a string that another program reads otherwise": "100e0 ",
            "true": True,
            "one that is the same as a double": 100000000000000000000000000000001,
            "a second one": [100, 101],
            "an object": {"a": 100},
        }.items()
    },
)
TRIED.works(
    "number",
    allow("mcp__bank__pay(amount=100)"),
    PAY,
    {"amount": 100},
    {"amount": 100.0},
    {"amount": "100"},
)

# What a call leaves out has the schema's default.
_AMOUNT_DEFAULTS: dict[str, dict[str, Any]] = {
    "of the argument": {"properties": {"amount": {"default": 1e2}}},
    "behind a reference": {
        "properties": {"amount": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"default": "100"}},
    },
    "behind two references": {
        "properties": {"amount": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"default": 100}},
    },
    "behind an anchor": {
        "properties": {"amount": {"$ref": "#a"}},
        "$defs": {"x": {"$anchor": "a", "default": 100}},
    },
    "in a branch": {"properties": {"amount": {"oneOf": [{"type": "null"}, {"default": 100}]}}},
    "of a whole schema behind a reference": {
        "$ref": "#/$defs/all",
        "$defs": {"all": {"properties": {"amount": {"default": 100}}}},
    },
    "in a condition": {
        "properties": {"amount": {}},
        "if": {},
        "then": {"properties": {"amount": {"default": 100}}},
    },
}
for _does, _schema in _AMOUNT_DEFAULTS.items():
    _paying = server_tool("pay", "bank", schema={"type": "object", **_schema})
    TRIED.attack(
        "denied default", _HUNDRED, _paying, {_does: {}, f"{_does}, for null": {"amount": None}}
    )
TRIED.attack(
    "denied default, nested",
    deny("mcp__bank__pay(order.amount=100)"),
    server_tool(
        "pay",
        "bank",
        schema={
            "type": "object",
            "properties": {"order": {"$ref": "#/$defs/o"}},
            "$defs": {"o": {"properties": {"amount": {"default": 100}}}},
        },
    ),
    {
        "an empty object": {"order": {}},
        "nothing": {},
        "an item of a list": {"order": [{"amount": 1}, {}]},
    },
)

# A text that is denied, under a spelling that the tool strips or decodes.
_EVE = deny("mcp__mail__send(to=eve@*)")
TRIED.works(
    "eve",
    _EVE,
    SEND,
    {"to": "bo@example.org"},
    {"to": "steve@example.org"},
    {"text": "eve@example.org"},
)
TRIED.attack(
    "denied text",
    _EVE,
    SEND,
    {
        "plainly": {"to": "eve@example.org"},
        "spaces before": {"to": "  eve@example.org"},
        "a no-break space": {"to": "\u00a0eve@example.org"},
        "a byte order mark": {"to": "\ufeffeve@example.org"},
        "an invisible character": {"to": "e\u200dve@example.org"},
        "a soft hyphen": {"to": "e\u00adve@example.org"},
        "a character that turns the direction": {"to": "\u202aeve@example.org"},
        "a tag character": {"to": "\U000e0001eve@example.org"},
        "full width": {"to": "ｅｖｅ@example.org"},
        "mathematical letters": {"to": "𝐞𝐯𝐞@example.org"},
        "percent signs": {"to": "%65ve@example.org"},
        "percent signs twice": {"to": "%2565ve@example.org"},
        "a list": {"to": ["bo@example.org", "eve@example.org"]},
        "an object": {"to": {"address": "eve@example.org"}},
        "an object in a list": {"to": [{"name": "Eve", "address": "eve@example.org"}]},
        "JSON in a string": {"to": '["eve@example.org"]'},
        "JSON in JSON in a string": {"to": '["[\\"eve@example.org\\"]"]'},
        "another case of the name": {"To": "eve@example.org"},
        "a name in full width": {"ｔｏ": "eve@example.org"},
        "a name with an invisible character": {"t\u200bo": "eve@example.org"},
        "a name with a space": {"to ": "eve@example.org"},
        "a copy in an object": {"to": "bo@example.org", "options": {"to": "eve@example.org"}},
        "a copy in a list": {"to": "bo@example.org", "copies": [{"TO": "eve@example.org"}]},
        "all of it as JSON in a string": {"payload": '{"to": "eve@example.org"}'},
        "a text too long to be read": {"to": "e" * 30_000},
        "marks without end": {"to": "e" + "\u0301" * 40 + "ve@example.org"},
        "more places than are looked at": {"x": [{}] * 20_000, "to": "bo@example.org"},
    },
)
TRIED.attack(
    "denied unnamed text of a server's tool",
    deny("mcp__mail__send(eve@*)"),
    SEND,
    {
        "in the first argument": {"to": "eve@example.org"},
        "in the last": {"to": "x", "text": "eve@example.org"},
        "in one that the schema lacks": {"bcc": "eve@example.org"},
        "nested": {"text": {"a": [["eve@example.org"]]}},
    },
)
TRIED.attack(
    "denied text in any case",
    deny("mcp__mail__send(to=nocase:Eve@*)"),
    SEND,
    {
        "capitals": {"to": "EVE@EXAMPLE.ORG"},
        "full width": {"to": "ＥＶＥ@x"},
        "spaces": {"to": " eVe@x "},
    },
)
TRIED.attack(
    "allowed text in any case",
    allow("mcp__mail__send(to=nocase:bank)"),
    SEND,
    {
        "a Kelvin sign": {"to": "ban\u212a"},
        "a dotted capital": {"to": "b\u0130nk"},
        "a space": {"to": "bank "},
    },
)
TRIED.works("case", allow("mcp__mail__send(to=nocase:bank)"), SEND, {"to": "BANK"}, {"to": "Bank"})

# A path or a command that comes to the same.
_DATA = allow("mcp__files__read(path=/data/*)")
TRIED.works("data", _DATA, READ, {"path": "/data/a.txt"}, {"path": "/data/b/..c"})
TRIED.attack(
    "allowed path",
    _DATA,
    READ,
    {
        does: {"path": path}
        for does, path in {
            "a way up": "/data/../etc/passwd",
            "a way up at the end": "/data/..",
            "a backslash": "/data/..\\..\\etc\\passwd",
            "percent signs": "/data/%2e%2e/etc/passwd",
            "percent signs twice": "/data/%252e%252e/etc/passwd",
            "a null character": "/data/\x00/../etc/passwd",
            "another path": "/etc/data/x",
            "a list": ["/data/a", "/etc/passwd"],
        }.items()
    },
)
TRIED.attack(
    "denied path",
    deny("mcp__files__read(path=/etc/*)"),
    READ,
    {
        does: {"path": path}
        for does, path in {
            "a way up": "/data/../etc/passwd",
            "two slashes": "//etc//passwd",
            "a dot": "/./etc/./passwd",
            "a scheme": "file:///etc/passwd",
            "backslashes": "\\etc\\passwd",
            "percent signs": "/%65tc/passwd",
            "spaces": " /etc/passwd",
        }.items()
    },
)
_GIT = allow("mcp__shell__run(command=git:*)")
TRIED.works("git", _GIT, RUN, {"command": "git"}, {"command": "git log --oneline -n 3"})
TRIED.attack(
    "allowed command",
    _GIT,
    RUN,
    {
        does: {"command": command}
        for does, command in {
            "another one": "rm -rf /",
            "one that begins alike": "gitk",
            "a second one": "git log; rm -rf /",
            "a second one after a line": "git log\nrm -rf /",
            "a second one beside": "git log & rm -rf /",
            "a pipe": "git log | sh",
            "one inside": "git log $(rm -rf /)",
            "one inside of ticks": "git log `rm -rf /`",
            "a variable": "git log $HOME",
            "a file": "git log > /etc/passwd",
            "a tab": "git\tlog",
            "a space before": " git log",
        }.items()
    },
)
TRIED.attack(
    "denied command",
    deny("mcp__shell__run(command=rm:*)"),
    RUN,
    {
        does: {"command": command}
        for does, command in {
            "plainly": "rm -rf /",
            "a space before": "  rm -rf /",
            "a tab": "rm\t-rf /",
            "after another": "ls; rm -rf /",
            "after a line": "ls\nrm -rf /",
            "inside": "echo $(rm -rf /)",
            "its folder": "/bin/rm -rf /",
            "quotes": "r'm' -rf /",
            "a backslash": "r\\m -rf /",
        }.items()
    },
)

# A server calls the argument something else once the operator has written a rule for it.
_RENAMED = server_tool("send", "mail", "rcpt", "body")
_RULES = deny(
    "mcp__mail__send(to=eve@*)",
    "mcp__mail__send(to=email:*@rival.example)",
    "mcp__mail__send(url=domain:*.internal.example)",
    "mcp__mail__send(force=true)",
    "mcp__mail__send(cc=*)",
)
TRIED.works(
    "renamed",
    _RULES,
    _RENAMED,
    {"rcpt": "bo@example.org", "body": "See https://example.org/ and mail @me, please."},
    {"rcpt": ["bo@example.org"], "body": "a b"},
)
TRIED.attack(
    "renamed argument",
    _RULES,
    _RENAMED,
    {
        "a text": {"rcpt": "eve@example.org"},
        "a text in a list": {"rcpt": ["bo@example.org", " eve@example.org"]},
        "a recipient": {"rcpt": "Bo <bo@rival.example>"},
        "a recipient in quotes": {"rcpt": '"bo"@rival.example'},
        "a host": {"body": "https://db.internal.example/"},
        "a host with a backslash": {"body": "https:\\\\db.internal.example"},
        "a switch": {"body": True},
    },
)
