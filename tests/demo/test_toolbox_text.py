"""Known values of texts, patterns, encodings, data formats and security."""

from __future__ import annotations

import asyncio
import re
import uuid

import pytest

from tests.demo.test_toolbox import Case, answer
from tool_search.demo.toolbox.data_formats import (
    compare_json,
    csv_to_json,
    csv_to_markdown,
    format_json,
    json_to_csv,
    json_value_at,
    markdown_table,
)
from tool_search.demo.toolbox.encodings_of_text import (
    base64_decode,
    base64_encode,
    caesar_shift,
    compress_text,
    decompress_text,
    describe_characters,
    hex_decode,
    hex_encode,
    html_escape,
    html_unescape,
    morse_decode,
    morse_encode,
    url_decode,
    url_encode,
)
from tool_search.demo.toolbox.patterns import regex_find, regex_replace
from tool_search.demo.toolbox.security import (
    decode_jwt,
    derive_key,
    generate_password,
    generate_uuid,
    hash_text,
    password_strength,
    sign_text,
)
from tool_search.demo.toolbox.texts import (
    change_case,
    count_words,
    diff_texts,
    edit_distance,
    is_palindrome,
    reading_time,
    remove_accents,
    remove_duplicate_lines,
    slugify,
    sort_lines,
    word_frequency,
    wrap_text,
)

# The example of RFC 7519, as jwt.io shows it.
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)

TEXTS = [
    Case(
        count_words,
        {"text": "Hello, world! 你好。\nIt's fine."},
        {"words": 6, "lines": 2, "sentences": 3},
    ),
    Case(word_frequency, {"text": "The cat and the dog", "count": 1}, [["the", 2]]),
    Case(reading_time, {"text": "word " * 460}, 2),
    Case(reading_time, {"text": "字" * 400}, 1),
    Case(change_case, {"text": "parseHTTPResponse", "case": "snake"}, "parse_http_response"),
    Case(change_case, {"text": "hello big world", "case": "camel"}, "helloBigWorld"),
    Case(change_case, {"text": "don't stop", "case": "title"}, "Don't Stop"),
    Case(slugify, {"text": "Crème Brûlée: the best!"}, "creme-brulee-the-best"),
    Case(remove_accents, {"text": "Café Ångström, йод"}, "Cafe Angstrom, йод"),
    Case(is_palindrome, {"text": "A man, a plan, a canal: Panama"}, True),
    Case(is_palindrome, {"text": "上海自来水来自海上"}, True),
    Case(is_palindrome, {"text": "hello"}, False),
    Case(sort_lines, {"text": "b\nA\nc", "descending": True}, "c\nb\nA"),
    Case(sort_lines, {"text": "10 x\n9 y", "numeric": True}, "9 y\n10 x"),
    Case(remove_duplicate_lines, {"text": "a\nb\na"}, "a\nb"),
    Case(wrap_text, {"text": "aaa bbb ccc", "width": 7}, "aaa bbb\nccc"),
    Case(
        diff_texts, {"old": "a\nb", "new": "a\nc"}, "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    ),
    Case(diff_texts, {"old": "same", "new": "same"}, ""),
    Case(edit_distance, {"first": "kitten", "second": "sitting"}, 3),
    Case(edit_distance, {"first": "", "second": "abc"}, 3),
    Case(
        regex_find,
        {"pattern": r"(\w+)@(\w+)", "text": "to a@b, c@d", "limit": 1},
        [{"match": "a@b", "start": 3, "groups": ["a", "b"]}],
    ),
    Case(
        regex_replace,
        {"pattern": r"(\d+)年", "replacement": r"\1-", "text": "2024年5月"},
        {"text": "2024-5月", "replaced": 1},
    ),
]

ENCODINGS = [
    # RFC 4648, section 10.
    Case(base64_encode, {"text": "foobar"}, "Zm9vYmFy"),
    Case(base64_encode, {"text": "你好"}, "5L2g5aW9"),
    Case(base64_encode, {"text": "???", "url_safe": True}, "Pz8_"),
    Case(base64_decode, {"encoded": "Zm9vYg"}, "foob"),
    Case(url_encode, {"text": "你 &好"}, "%E4%BD%A0%20%26%E5%A5%BD"),
    Case(url_decode, {"encoded": "a%2Fb+c"}, "a/b+c"),
    Case(html_escape, {"text": "<a href='x'>&"}, "&lt;a href=&#x27;x&#x27;&gt;&amp;"),
    Case(html_unescape, {"text": "&lt;&copy;&#20320;"}, "<©你"),
    Case(hex_encode, {"text": "Hi"}, "4869"),
    Case(hex_decode, {"encoded": "E4 BD A0"}, "你"),
    Case(morse_encode, {"text": "SOS at 5"}, "... --- ... / .- - / ....."),
    Case(morse_decode, {"code": "... --- ... / .- -"}, "SOS AT"),
    Case(caesar_shift, {"text": "Hello, 世界", "shift": 13}, "Uryyb, 世界"),
    Case(caesar_shift, {"text": "abc xyz", "shift": 3}, "def abc"),
    Case(
        describe_characters,
        {"text": "é"},
        [
            {
                "character": "é",
                "code_point": "U+00E9",
                "name": "LATIN SMALL LETTER E WITH ACUTE",
                "category": "Ll",
            }
        ],
    ),
]

DATA = [
    Case(format_json, {"text": '{"b":1,"a":[]}', "indent": 0, "sort_keys": True}, '{"a":[],"b":1}'),
    Case(format_json, {"text": '{"名":1}'}, '{\n  "名": 1\n}'),
    Case(json_value_at, {"text": '{"u": [{"n": "李"}]}', "path": "u[0].n"}, '"李"'),
    Case(
        compare_json,
        {"old": '{"a": 1, "b": [1]}', "new": '{"a": 2, "b": [1, 3]}'},
        ["changed a: 1 -> 2", "added b[1]: 3"],
    ),
    Case(compare_json, {"old": "[1]", "new": "[1]"}, []),
    Case(csv_to_json, {"text": 'a,b\n1,"x,y"\n'}, [{"a": "1", "b": "x,y"}]),
    Case(json_to_csv, {"text": '[{"a": 1}, {"a": "x,y", "b": null}]'}, 'a,b\n1,\n"x,y",\n'),
    Case(
        csv_to_markdown,
        {"text": "name;n\nA|B;2", "delimiter": ";"},
        "| name | n   |\n| ---- | --- |\n| A\\|B | 2   |",
    ),
    Case(
        markdown_table,
        {"headers": ["城市", "x"], "rows": [["北京"]]},
        "| 城市 | x   |\n| ---- | --- |\n| 北京 |     |",
    ),
]

SECURITY = [
    Case(hash_text, {"text": "abc", "algorithm": "md5"}, "900150983cd24fb0d6963f7d28e17f72"),
    Case(
        hash_text,
        {"text": "abc"},
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    Case(
        sign_text,
        {"text": "The quick brown fox jumps over the lazy dog", "key": "key"},
        "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
    ),
    Case(
        derive_key,
        {"password": "password", "salt": "salt", "iterations": 1},
        "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b",
    ),
    Case(
        decode_jwt,
        {"token": JWT},
        {
            "header": {"alg": "HS256", "typ": "JWT"},
            "payload": {"sub": "1234567890", "name": "John Doe", "iat": 1516239022},
        },
    ),
    Case(password_strength, {"password": "Password1"}, {"entropy_bits": 0, "rating": "very weak"}),
    Case(password_strength, {"password": "aaaaaaaaaaaa"}, {"rating": "very weak"}),
    Case(
        password_strength, {"password": "v9#Kq2!xT7@mZ4"}, {"rating": "very strong", "advice": []}
    ),
    # The example of RFC 4122's namespace in Python's own documentation.
    Case(generate_uuid, {"name": "python.org"}, "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
]

REFUSED = [
    Case(change_case, {"text": "a", "case": "spongebob"}, "'spongebob'.*lower, upper"),
    Case(sort_lines, {"text": "x", "numeric": True}, "does not start with a number"),
    Case(regex_find, {"pattern": "(", "text": ""}, "cannot be used"),
    Case(regex_find, {"pattern": "a" * 501, "text": ""}, "length from 1 to 500, not 501"),
    Case(base64_decode, {"encoded": "a*b"}, "not Base64"),
    Case(base64_decode, {"encoded": "/w=="}, "UTF-8"),
    Case(hex_decode, {"encoded": "zz"}, "not hexadecimal"),
    Case(morse_encode, {"text": "你"}, "Morse code lacks"),
    Case(decompress_text, {"compressed": "AAAA"}, "not zlib data"),
    Case(format_json, {"text": "{"}, "text is not JSON"),
    Case(format_json, {"text": "[NaN]"}, "NaN is no JSON number"),
    Case(json_value_at, {"text": '{"a": 1}', "path": "a.b"}, "leads nowhere at '.b'"),
    Case(csv_to_json, {"text": "a,b\n1"}, "row 2 has 1 values"),
    Case(json_to_csv, {"text": "{}"}, "list of objects"),
    Case(decode_jwt, {"token": "a.b"}, "three parts.*not 2"),
]

KNOWN = [*TEXTS, *ENCODINGS, *DATA, *SECURITY]


@pytest.mark.parametrize("case", KNOWN, ids=str)
async def test_tool_gives_the_known_value(case: Case) -> None:
    await case.check()


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_bad_input_is_refused_with_its_value(case: Case) -> None:
    with pytest.raises(ValueError, match=case.expected):
        await answer(case.tool, case.arguments)


async def test_runaway_pattern_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that would run for years ends with an error."""
    monkeypatch.setattr("tool_search.demo.toolbox.patterns._SECONDS", 0.5)
    with pytest.raises(ValueError, match=r"ran longer than 0\.5 s"):
        await regex_find("(a+)+$", "a" * 60 + "b")


async def test_pattern_that_python_warns_of_still_runs() -> None:
    assert await regex_find("[[a]", "[") == [{"match": "[", "start": 0, "groups": []}]


async def test_cancelled_pattern_leaves_no_process() -> None:
    call = asyncio.create_task(regex_find("(a+)+$", "a" * 60 + "b"))
    await asyncio.sleep(0.2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_compressed_text_is_read_back() -> None:
    packed = await compress_text("你好 hello " * 100)
    assert int(packed["bytes_after"]) < int(packed["bytes_before"])
    assert await decompress_text(str(packed["compressed"])) == "你好 hello " * 100


def test_generated_secrets_have_the_asked_form() -> None:
    password = generate_password(length=20, symbols=False)
    assert re.fullmatch(r"[A-Za-z0-9]{20}", password)
    assert re.search(r"[a-z]", password)
    assert re.search(r"\d", password)
    assert uuid.UUID(generate_uuid()).version == 4
