"""The query language: recognises queries with operators, and parses them.

Words are joined by OR; AND binds tighter. There are AND, OR and NOT in upper case,
+required, -excluded, parentheses, "a phrase", a prefix*, name:, description:, server:,
tag:, namespace: and category: before a word, a phrase or a prefix, and select:a,b for exact
names.

Most queries are plain text, which must lose nothing to an accidental sign. A text that
does not parse is plain; so is a sentence, recognised by its stop words, a text of several
lines, a long text, and a text whose operators say no more than its words do.

Source: the language of MCProxy's document, which is tantivy's query parser
(https://docs.rs/tantivy, module `query::QueryParser`); the prefix is our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from tool_search.search.text.stop_words import STOP_WORDS

__all__ = ["FieldFilter", "Group", "Node", "Term", "parse_query", "selected_names"]

FieldFilter = Literal["name", "description", "server", "tag", "namespace", "category"]
_FIELDS: dict[str, FieldFilter] = {
    "name:": "name",
    "description:": "description",
    "server:": "server",
    "tag:": "tag",
    "namespace:": "namespace",
    "category:": "category",
}

_MAX_CHARS = 2_000
_MAX_TOKENS = 96
_MAX_LOOKED_FOR = 16
_MAX_DEPTH = 16
_MAX_SELECTED = 256
_TOKEN = re.compile(
    r"\s*(?:(?P<open>\()|(?P<close>\))"
    r"|(?P<sign>[+-](?=[\"(]|[^\W\d_]))"
    r"|(?P<field>(?:name|description|server|tag|namespace|category):(?=[\"\w]))"
    r"|\"(?P<phrase>[^\"]*)\"(?=[\s),;.!?]|$)"
    r"|(?P<prefix>[^\W\d_](?:[\w.-]*\w)?\*(?=[\s)]|$))"
    r"|(?P<word>[^\s()\"][^\s()]*))"
)
# A text without any of these has no operator.
_MAY_OPERATE = re.compile(r"[\"(:*]|AND|OR|NOT|(?:^|\s)[+-]")
_SELECT = re.compile(r"\s*select:(.+)", re.DOTALL)
_OPERATORS = frozenset(("AND", "OR", "NOT"))
# Lower-case "and" and "or" are not operators, and their writer may still use one.
_OF_A_SENTENCE = STOP_WORDS - {"and", "or"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A leaf of a query.

    Attributes:
        text: The text as written, without quotation marks and asterisk.
        kind: How it is matched.
        field: The only field to look in; None for all.
    """

    text: str
    kind: Literal["word", "phrase", "prefix"] = "word"
    field: FieldFilter | None = None

    @property
    def is_plain(self) -> bool:
        """True if it is a word like any other."""
        return self.kind == "word" and self.field is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node of a query; if nothing is required, one of the optional parts is.

    A whole query without either has every tool that it does not exclude.

    Attributes:
        must: Parts that are all required.
        should: Parts that are joined by OR.
        must_not: Parts that exclude a tool.
    """

    must: tuple[Node, ...] = ()
    should: tuple[Node, ...] = ()
    must_not: tuple[Node, ...] = ()

    @property
    def wanted(self) -> Iterator[Term]:
        """The leaves that are asked for, without those that are excluded."""
        for node in (*self.must, *self.should):
            if isinstance(node, Term):
                yield node
            else:
                yield from node.wanted

    @property
    def is_only_phrases(self) -> bool:
        """True if it asks for quotations alone, as a whole text in quotes does."""
        asked = all(term.kind == "phrase" and term.field is None for term in self.wanted)
        return asked and not (self.must or self.must_not)

    @property
    def is_plain(self) -> bool:
        """True if its words alone say the same: words by OR, quotations among them."""
        if self.must or self.must_not or self.is_only_phrases:
            return False
        terms = all(
            node.is_plain or (node.kind == "phrase" and node.field is None)
            for node in self.should
            if isinstance(node, Term)
        )
        groups = (node for node in self.should if isinstance(node, Group))
        return terms and all(node.is_plain or node.is_only_phrases for node in groups)


Node = Term | Group


def selected_names(query: str) -> tuple[str, ...]:
    """Return the names of a `select:a,b`, in order; empty for any other query."""
    found = _SELECT.fullmatch(query)
    if not found:
        return ()
    names = found[1].split(",", _MAX_SELECTED)[:_MAX_SELECTED]
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


@lru_cache(maxsize=64)
def parse_query(query: str) -> Group | None:
    """Parse a query with operators; return None for plain text.

    >>> parse_query("github -issue").must_not
    (Term(text='issue', kind='word', field=None),)
    >>> parse_query("find me something - anything: read/write in C++") is None
    True
    """
    if not _MAY_OPERATE.search(query):
        return None
    tokens = _tokens(query.strip())
    looked_for = sum(token.kind in ("field", "phrase", "prefix") for token in tokens)
    if not tokens or looked_for > _MAX_LOOKED_FOR or _is_sentence(tokens, query):
        return None
    try:
        group = _Parser(tokens).query()
    except _NotSyntaxError:
        return None
    says_or = any(token.kind == "OR" for token in tokens)
    return None if group.is_plain and not says_or else group


class _NotSyntaxError(Exception):
    """The text is not a query with operators."""


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(query: str) -> list[_Token]:
    """Return the tokens of a query; empty if a part of it is not a token."""
    if len(query) > _MAX_CHARS or "\n" in query or "\r" in query:
        return []
    tokens: list[_Token] = []
    place = 0
    while place < len(query):
        found = _TOKEN.match(query, place)
        if not found or found.lastgroup is None or len(tokens) >= _MAX_TOKENS:
            return []
        kind, text = found.lastgroup, found[found.lastgroup]
        place = found.end()
        if kind == "word" and text in _OPERATORS:
            kind = text
        elif kind in ("word", "phrase") and not any(map(str.isalnum, text)):
            # A dash, && or a comma after a quotation means nothing.
            if kind == "phrase":
                return []
            continue
        tokens.append(_Token(kind, text))
    return tokens


def _is_sentence(tokens: list[_Token], query: str) -> bool:
    """Return True for prose, in which AND, a dash or a colon is not an operator."""
    words = [token.text if token.kind == "word" else "" for token in tokens]
    neighbours = list(pairwise([*words, ""]))
    for word, after in neighbours:
        bare = word.strip(".,;:!?").lower()
        # A single letter may be a name: it is a stop word only before another word.
        if bare in _OF_A_SENTENCE and (len(bare) > 1 or after):
            return True
    # READ FILES AND SEND MAIL: if all is upper case, AND is not an operator.
    return query.isupper() and any(word and after for word, after in neighbours)


class _Parser:
    """Recursive descent over the tokens of one query."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def query(self) -> Group:
        """Return the whole text as a group."""
        group = self._group()
        if self._next is not None:
            raise _NotSyntaxError
        return group

    @property
    def _next(self) -> str | None:
        return self._tokens[self._place].kind if self._place < len(self._tokens) else None

    def _take(self, *kinds: str) -> _Token | None:
        if self._next not in kinds:
            return None
        self._place += 1
        return self._tokens[self._place - 1]

    def _group(self) -> Group:
        """Parse clauses, joined by OR or nothing, up to the end or a bracket."""
        must: list[Node] = []
        should: list[Node] = []
        must_not: list[Node] = []
        lists = {"+": must, "": should, "-": must_not}
        while True:
            for sign, node in self._clause():
                lists[sign].append(node)
            if self._next in (None, "close"):
                break
            self._take("OR")
        # A query may exclude and ask for nothing, a part in brackets may not.
        if not must and not should and (self._depth or not must_not):
            raise _NotSyntaxError
        if not must and not must_not and len(should) == 1 and isinstance(should[0], Group):
            return should[0]
        return Group(must=tuple(must), should=tuple(should), must_not=tuple(must_not))

    def _clause(self) -> list[tuple[str, Node]]:
        """Parse one operand, or several that AND joins."""
        joined = [self._operand()]
        while self._take("AND"):
            joined.append(self._operand())
        if len(joined) == 1:
            return joined
        must = tuple(node for sign, node in joined if sign != "-")
        must_not = tuple(node for sign, node in joined if sign == "-")
        if not must:
            return joined
        return [("", Group(must=must, must_not=must_not))]

    def _operand(self) -> tuple[str, Node]:
        """Parse a leaf or a bracket, and the sign before it."""
        sign = self._take("sign", "NOT")
        written = "" if sign is None else "-" if sign.kind == "NOT" else sign.text
        return written, self._bracket() if self._take("open") else self._leaf()

    def _bracket(self) -> Group:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotSyntaxError
        group = self._group()
        if not self._take("close"):
            raise _NotSyntaxError
        self._depth -= 1
        return group

    def _leaf(self) -> Term:
        field = self._take("field")
        within = None if field is None else _FIELDS[field.text]
        token = self._take("word", "phrase", "prefix")
        if token is None:
            raise _NotSyntaxError
        if token.kind == "phrase":
            return Term(text=token.text, kind="phrase", field=within)
        if token.kind == "prefix":
            return Term(text=token.text[:-1], kind="prefix", field=within)
        return Term(text=token.text, field=within)
