"""Attempts with hosts and recipients that programs read in different ways."""

from __future__ import annotations

from tests.security.attempts import FETCH, SEND, Attempts, allow, deny

__all__ = ["TRIED"]

TRIED = Attempts()

# An injected model writes a recipient that one mail program reads in another way.
_TO_US = allow("mcp__mail__send(to=email:*@example.org)")
TRIED.works(
    "mail",
    _TO_US,
    SEND,
    {"to": "bo@example.org"},
    {"to": "Bo <Bo@EXAMPLE.org>"},
    {"to": ["bo@example.org", "ann@example.org"]},
    {"to": "bo@example.org, ann@example.org"},
)
TRIED.attack(
    "allowed mail",
    _TO_US,
    SEND,
    {
        "another host": {"to": "bo@evil.example"},
        "a host below": {"to": "bo@x.example.org"},
        "a host that begins alike": {"to": "bo@example.org.evil.example"},
        "a host that ends alike": {"to": "bo@notexample.org"},
        "a second recipient after a comma": {"to": "bo@example.org, eve@evil.example"},
        "a second recipient after a semicolon": {"to": "eve@evil.example;bo@example.org"},
        "a second recipient after a space": {"to": "eve@evil.example bo@example.org"},
        "a second recipient in a list": {"to": ["bo@example.org", "eve@evil.example"]},
        "a second recipient in a list of lists": {"to": [["bo@example.org"], ["eve@evil.example"]]},
        "a header": {"to": "bo@example.org\r\nBcc: eve@evil.example"},
        "a quoted local part": {"to": '"eve@evil.example "@example.org'},
        "a comment": {"to": "eve@evil.example(@example.org)"},
        "a name that is an address": {"to": "eve@evil.example <bo@example.org>"},
        "an address that is a name": {"to": '"bo@example.org" <eve@evil.example>'},
        "two addresses in brackets": {"to": "Bo <eve@evil.example> <bo@example.org>"},
        "a route": {"to": "<@evil.example:bo@example.org>"},
        "a percent hack": {"to": "eve%evil.example@example.org"},
        "a bang path": {"to": "evil.example!eve@example.org"},
        "a group": {"to": "all: eve@evil.example, bo@example.org;"},
        "a letter that looks alike in the host": {"to": "bo@exаmple.org"},
        "an invisible character": {"to": "bo@evil.example\u200b@example.org"},
        "an object": {"to": {"address": "bo@example.org", "bcc": "eve@evil.example"}},
        "JSON in a string": {"to": '["eve@evil.example", "bo@example.org"]'},
        "a way that is no mail": {"to": "mailto:bo@example.org"},
        "nobody": {"to": ""},
        "null, for which the server has a default": {"to": None},
        "the argument left out": {"text": "bo@example.org"},
    },
)

# An address that the operator's client would connect to another host for.
_SITE = allow("mcp__web__fetch(url=domain:example.org)")
TRIED.works(
    "site",
    _SITE,
    FETCH,
    {"url": "https://example.org/a?b#c"},
    {"url": "HTTPS://EXAMPLE.org:8443"},
    {"url": "https://example.org./"},
    {"url": "https://ｅxample。org/"},
)
TRIED.attack(
    "allowed host",
    _SITE,
    FETCH,
    {
        does: {"url": url}
        for does, url in {
            "another host": "https://evil.example/",
            "a host below": "https://www.example.org/",
            "a host that begins alike": "https://example.org.evil.example/",
            "a host that ends alike": "https://notexample.org/",
            "a user's name": "https://example.org@evil.example/",
            "a user's name and password": "https://example.org:443@evil.example/",
            "two signs of a user": "https://evil.example@evil.example@example.org/",
            "a backslash": "https://evil.example\\@example.org/",
            "a backslash for a slash": "https:\\\\example.org/",
            "a backslash in the host": "https://evil.example\\.example.org/",
            "a percent sign in the host": "https://evil.example%2f.example.org/",
            "the host in percent signs": "https://%65xample.org/",
            "a tab": "https://evil.example\t.example.org/",
            "a line break in the host": "https://exam\nple.org/",
            "a space before": " https://example.org/",
            "no slashes": "https:example.org",
            "three slashes": "https:///example.org/",
            "no host": "https://",
            "a path of this machine": "file:///example.org",
            "another scheme without a host": "javascript://example.org%0aalert(1)",
            "a port that is none": "https://example.org:80:evil.example/",
            "a fragment for a host": "https://evil.example#@example.org/",
            "a query for a host": "https://evil.example?@example.org/",
            "a path for a host": "https://evil.example/example.org",
            "two dots": "https://example..org/",
            "a letter that looks alike": "https://exаmple.org/",
            "an emoji, which IDNA 2008 does not have": "https://example❤.org/",
            "two addresses": "https://example.org https://evil.example",
            "two hosts": "https://example.org,evil.example/",
            "an address in brackets": "https://[example.org]/",
        }.items()
    },
)
TRIED.attack(
    "allowed host that IDNA 2003 maps",
    allow("mcp__web__fetch(url=domain:strasse.de)"),
    FETCH,
    {
        "a sharp s, which is a host of its own": {"url": "https://straße.de/"},
    },
)
TRIED.attack(
    "allowed host that IDNA 2003 maps",
    allow("mcp__web__fetch(url=domain:xn--mxa9ab.gr)"),
    FETCH,
    {
        "a final sigma": {"url": "https://Σας.gr/"},
    },
)
TRIED.attack(
    "allowed address",
    allow("mcp__web__fetch(url=domain:127.0.0.1)"),
    FETCH,
    {
        "a number": {"url": "http://2130706433/"},
        "octal digits": {"url": "http://0177.0.0.1/"},
        "an octal that some read as decimal": {"url": "http://127.0.0.010/"},
    },
)

# A host that is denied, in a spelling that leads to it all the same.
_METADATA = deny("mcp__web__fetch(url=domain:169.254.169.254)")
TRIED.works(
    "metadata",
    _METADATA,
    FETCH,
    {"url": "https://example.org/"},
    {"url": "http://169.254.169.253/"},
)
TRIED.attack(
    "denied address",
    _METADATA,
    FETCH,
    {
        does: {"url": url}
        for does, url in {
            "plainly": "http://169.254.169.254/latest",
            "a port": "http://169.254.169.254:80/",
            "a user": "http://x@169.254.169.254/",
            "a dot at the end": "http://169.254.169.254./",
            "no scheme": "169.254.169.254/latest",
            "decimal": "http://2852039166/",
            "hexadecimal": "http://0xa9fea9fe/",
            "octal": "http://0251.0376.0251.0376/",
            "mixed": "http://0xa9.254.0251.254/",
            "three parts": "http://169.254.43518/",
            "two parts": "http://169.16689662/",
            "leading zeros": "http://169.254.169.0254/",
            "full width": "http://１６９．２５４．１６９．２５４/",
            "circled digits": "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/",
            "percent signs": "http://%31%36%39.254.169.254/",
            "mapped into IPv6": "http://[::ffff:169.254.169.254]/",
            "mapped into IPv6, hexadecimal": "http://[::ffff:a9fe:a9fe]/",
            "compatible IPv6": "http://[::a9fe:a9fe]/",
            "NAT64": "http://[64:ff9b::a9fe:a9fe]/",
            "6to4": "http://[2002:a9fe:a9fe::]/",
            "a zone": "http://[::ffff:a9fe:a9fe%25eth0]/",
            "a backslash": "http:\\\\169.254.169.254/",
            "a number that is no text": 2852039166,
            "a list": ["https://example.org/", "http://169.254.169.254/"],
        }.items()
    },
)
_INTERNAL = deny(
    "mcp__web__fetch(url=domain:*.internal.example)", "mcp__web__fetch(url=domain:straße.de)"
)
TRIED.works(
    "internal",
    _INTERNAL,
    FETCH,
    {"url": "https://internal.example/"},
    {"url": "https://strasse.com/"},
)
TRIED.attack(
    "denied host",
    _INTERNAL,
    FETCH,
    {
        does: {"url": url}
        for does, url in {
            "capitals": "https://DB.INTERNAL.example/",
            "an ideographic stop": "https://db。internal。example/",
            "full width": "https://ｄｂ.internal.example/",
            "a soft hyphen": "https://db.inter\u00adnal.example/",
            "a dot at the end": "https://db.internal.example./",
            "percent signs": "https://db%2einternal.example/",
            "deeper below": "https://a.b.internal.example/",
            "its code": "https://xn--strae-oqa.de/",
            "a capital sharp s": "https://STRAẞE.de/",
            "a label without an end": f"https://{'a' * 64}.internal.example/",
        }.items()
    },
)

_RIVAL = deny(
    "mcp__mail__send(to=email:*@rival.example)", "mcp__mail__send(to=email:boss@example.org)"
)
TRIED.works("rival", _RIVAL, SEND, {"to": "bo@example.org"}, {"to": "Rival <bo@example.org>"})
TRIED.attack(
    "denied mail",
    _RIVAL,
    SEND,
    {
        "capitals": {"to": "BO@RIVAL.EXAMPLE"},
        "a name": {"to": "Bo <bo@rival.example>"},
        "the second of two": {"to": "bo@example.org, bo@rival.example"},
        "a semicolon": {"to": "bo@example.org; bo@rival.example"},
        "quotes": {"to": '"bo"@rival.example'},
        "a comment": {"to": "bo@(x)rival.example"},
        "a dot at the end": {"to": "bo@rival.example."},
        "full width": {"to": "bo@ｒival.example"},
        "a header": {"to": "bo@example.org\nCc: bo@rival.example"},
        "a route": {"to": "<@example.org:bo@rival.example>"},
        "an address of numbers": {"to": "bo@[10.0.0.1]"},
        "a tag": {"to": "boss+x@example.org"},
        "a name alone": {"to": "bo"},
        "an invisible character": {"to": "bo@rival\u200b.example"},
    },
)
