"""The vectors of tools and queries, and the scale of their similarities."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.core.catalog.tool import Tool
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.query import QUOTATION
from tool_search.search.text.scripts import by_script, scripts_in
from tool_search.search.vectors.cache import VectorCache
from tool_search.search.vectors.calls import CallLimits, EmbedderCalls, Waiting
from tool_search.search.vectors.embedder import Embedder, EmbeddingProgress
from tool_search.search.vectors.vectors import (
    Matrix,
    Vector,
    from_bytes,
    normalize_rows,
    round_components,
    to_bytes,
)

__all__ = [
    "CALIBRATION_PAIRS",
    "NOISE_QUERIES",
    "Scale",
    "ToolVectors",
    "name_of",
    "vector_ids",
]


# Texts without a meaning in three scripts: keys hit at random, hashes, made-up words. A query
# that is as near to these as to any tool is not a wish. Written without looking at any query
# that is measured.
_NOISE_ROWS = """
asdf jkl qwer uiop
qwertyuiop
zxcvbnm asdfghjkl
hjkl yuio bnm
xq zv wk jj
kjsdhf skdjfh wieury
flurp blumf dwex
snorgle wumpty grimbax
lkjasd oiuqwe mnxzcv
a1b2c3d4e5f6
3f2504e0-4f89-11d3-9a0c-0305e82c3301
aGVsbG8gd29ybGQgZm9v
фыва олдж
йцукенгшщзхъ
ждлор пави
хрумзя пырк бдыщ
сяпала калуша по напушке
ыгъ эщю
шмырк фтуц
жзщ фцх
咕噜叽里呱啦
嘟哒噗嗒噗
哦哦嗯嗯啊
锹擦窟帧逾
囧槑烎嫑
蔫厥沓戳辙榫
鑫淼焱垚
噫吁嚱欸
"""

NOISE_QUERIES: tuple[str, ...] = tuple(_NOISE_ROWS.strip().split("\n"))
"""Texts without a meaning, to calibrate an embedder."""


# Queries, each with a tool that fits it and no other query. Written from general knowledge
# of what tools do, not from any data set.
_PAIR_ROWS = """
Will it rain in Paris tomorrow? | get_weather_forecast | Returns the forecast for a city.
Please book me a table for two tonight | reserve_restaurant | Makes a reservation at a restaurant.
How much is 50 dollars in yen? | convert_currency | Converts an amount to another currency.
Send Anna a message that I will be late | send_message | Sends a text message to a contact.
I need a flight from Berlin to Rome on Friday | search_flights | Finds flights between two airports.
Which pods keep crashing in my cluster? | list_pods | Lists the pods of a namespace.
Open an issue about the broken login page | create_issue | Creates an issue in a repository.
What is the shortest way to the station? | get_directions | Computes a route between two places.
我想把这段话翻译成英文 | translate_text | 把一段文字翻译成另一种语言
帮我查一下这个快递到哪里了 | track_parcel | 查询包裹的物流状态
给我放一首周杰伦的歌 | play_music | 播放歌曲或歌单
明天早上七点叫我起床 | set_alarm | 设置闹钟
这张图片里的文字是什么 | recognize_text | 识别图片中的文字
我的手机话费还剩多少 | query_phone_balance | 查询手机号码的余额
帮我把客厅的灯关掉 | control_light | 打开或关闭房间里的灯
推荐几部好看的科幻电影 | recommend_movies | 根据类型推荐电影
Удали файл отчета из папки | delete_file | Удаляет файл по его пути.
Какой сейчас курс акций Газпрома? | get_stock_price | Возвращает текущую цену акции на бирже.
Сколько калорий в двух яблоках? | count_calories | Считает калории в продуктах.
Покажи последние новости спорта | get_news | Возвращает свежие новости по теме.
Запиши меня к врачу на среду | book_doctor | Записывает пациента на прием к врачу.
Реши квадратное уравнение | solve_equation | Находит корни уравнения.
Кто выставил счет номер 18? | get_invoice | Возвращает счет по его номеру.
Выполни запрос к базе данных | run_query | Выполняет запрос SQL и возвращает строки таблицы.
"""


def _pair(line: str) -> tuple[str, Tool]:
    query, name, description = line.split(" | ")
    return query, Tool(name=name, description=description)


CALIBRATION_PAIRS: tuple[tuple[str, Tool], ...] = tuple(map(_pair, _PAIR_ROWS.strip().split("\n")))
"""Queries with a fitting tool, in three languages, to calibrate an embedder."""


_RECIPE = "2"
# Between a tool's name and the number of its further vector.
_FURTHER = "\n"
_BATCH = 64
_MAX_PARAMETERS = 400
_MAX_PARAMETER_TEXTS_CHARS = 600
_MIN_SPAN = 0.02
# Chosen in `benchmarks/hybrid.md`.
_NEAREST = 3
_MARGIN = 0.15
# A wish is near to the whole of a tool, noise to one language of it by chance. In a catalog
# that is in two languages throughout, a wish in one of them is less near to the whole.
_MARGIN_IN_ONE_LANGUAGE = 0.205
_MAX_QUERY_CHARS = 4_000
_MAX_RECENT_QUERIES = 256
# `Sends mail. (发送邮件。)`, `Sends mail. / 发送邮件。`
_AROUND_TRANSLATION = " /|()（）[]【】"
_WORD_EDGE = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_.\-]+")


class Scale(NamedTuple):
    """The meaning of an embedder's similarities, which differ much between embedders.

    Attributes:
        noise: The similarity of a query to an unrelated tool.
        fit: The similarity of a query to a fitting tool.
        nonsense: The vectors of texts without a meaning.
    """

    noise: float
    fit: float
    nonsense: Matrix

    def of(self, similarities: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the similarities on the scale where `noise` is 0 and `fit` is 1."""
        return (similarities.astype(np.float64) - self.noise) / (self.fit - self.noise)

    def is_nonsense(self, query: Vector, nearest: float, nearest_language: float) -> bool:
        """Return True if a query is no nearer to a tool than to texts without a meaning.

        Args:
            query: The vector of the query.
            nearest: The similarity of the nearest tool, on this scale.
            nearest_language: The same for the nearest of a tool's languages.
        """
        near = np.sort(np.einsum("ij,j->i", self.nonsense, query))[-_NEAREST:]
        noise = float(np.mean(self.of(near)))
        in_one_language = noise + _MARGIN_IN_ONE_LANGUAGE
        return nearest < noise + _MARGIN and nearest_language < in_one_language


# One for each embedder of the process: there are few, and each takes 0.1 s to measure.
_scales: dict[tuple[str, int], Scale] = {}


class ToolVectors:
    """Makes the vectors of tools and queries.

    A tool's vector is the mean of the vectors of its name, its description, both together,
    the names and the texts of its parameters: each of them alone ranks other tools first. A
    tool that is described in languages of different scripts has further vectors, one for
    each. A query's vector is that of its text without quotations, which are values.

    Args:
        embedder: Makes the vectors of texts.
        cache: Keeps the vectors of tools; None to make them each time.
        limits: The time that calls of the embedder may take.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        cache: VectorCache | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        self.calls = EmbedderCalls(embedder, limits)
        self._embedder = embedder
        self._cache = cache
        self._recent = _RecentVectors()

    @property
    def identity(self) -> str:
        """The name of what the vectors depend on."""
        return f"{self._embedder.identity} {self._embedder.dimensions}"

    def of_tools(
        self,
        tools: Iterable[Tool],
        *,
        progress: EmbeddingProgress | None = None,
        waiting: Waiting = "nobody",
    ) -> dict[str, Vector]:
        """Return the vectors of each tool, by id; see `vector_ids`.

        Args:
            tools: Tools of different names.
            progress: Called while vectors are made; not called if all are cached.
            waiting: See `EmbedderCalls.embed`; the time is that of one batch.

        Raises:
            SearchError: The embedder failed.
        """
        texts = {
            name: own
            for tool in tools
            for name, own in zip(vector_ids(tool), _texts(tool), strict=True)
        }
        keys = {name: self._key(found) for name, found in texts.items()}
        vectors = self._load_cached(keys)
        missing = [name for name in texts if name not in vectors]
        for start in range(0, len(missing), _BATCH):
            names = missing[start : start + _BATCH]
            made = self._embed_tools([texts[name] for name in names], waiting)
            vectors.update(zip(names, made, strict=True))
            if self._cache is not None:
                self._cache.put({keys[name]: to_bytes(vectors[name]) for name in names})
            if progress is not None:
                progress(start + len(names), len(missing))
        return vectors

    def of_query(self, query: str) -> Vector:
        """Return the vector of a query; 0 if it has no letter or digit.

        Raises:
            SearchError: The embedder failed.
        """
        vector: Vector = self.of_queries([query])[0]
        return vector

    def of_queries(self, queries: Sequence[str]) -> Matrix:
        """Return the vectors of several queries, in one batch; see `of_query`.

        The vectors of recent queries are kept.

        Raises:
            SearchError: The embedder failed.
        """
        wishes = [_wish(query) for query in queries]
        found = self._recent.get(wishes)
        missing = [wish for wish in dict.fromkeys(wishes) if wish not in found]
        if missing:
            made = round_components(self.calls.embed(missing, "query", waiting="search"))
            found.update(zip(missing, made, strict=True))
            self._recent.put({wish: found[wish] for wish in missing})
        if not wishes:
            return np.zeros((0, self._embedder.dimensions), np.float32)
        return np.stack([found[wish] for wish in wishes])

    def scale(self, *, waiting: Waiting = "nobody") -> Scale:
        """Return the scale of this embedder, measured with `CALIBRATION_PAIRS`.

        Args:
            waiting: See `EmbedderCalls.embed`.

        Raises:
            SearchError: The embedder failed.
        """
        key = self._embedder.identity, self._embedder.dimensions
        if key not in _scales:
            tools = self.of_tools((tool for _, tool in CALIBRATION_PAIRS), waiting=waiting)
            asked = [query for query, _ in CALIBRATION_PAIRS]
            queries = round_components(self.calls.embed(asked, "query", waiting=waiting))
            found = queries @ np.stack([tools[tool.name] for _, tool in CALIBRATION_PAIRS]).T
            fitting = np.eye(len(CALIBRATION_PAIRS), dtype=bool)
            noise, fit = float(np.mean(found[~fitting])), float(np.mean(found[fitting]))
            nonsense = round_components(self.calls.embed(NOISE_QUERIES, "query", waiting=waiting))
            _scales[key] = Scale(noise, max(fit, noise + _MIN_SPAN), nonsense)
        return _scales[key]

    def _load_cached(self, keys: dict[str, str]) -> dict[str, Vector]:
        if self._cache is None:
            return {}
        entries = self._cache.get(list(keys.values()))
        found = {
            name: from_bytes(entries[key], self._embedder.dimensions)
            for name, key in keys.items()
            if key in entries
        }
        return {name: vector for name, vector in found.items() if vector is not None}

    def _embed_tools(self, tools: Sequence[Sequence[str]], waiting: Waiting) -> Matrix:
        """Return the vectors of tools that have these texts."""
        different = list(dict.fromkeys(text for texts in tools for text in texts))
        made = self.calls.embed(different, "document", waiting=waiting)
        rows = dict(zip(different, made, strict=True))
        sums = [np.sum([rows[text] for text in texts], axis=0, dtype=np.float32) for texts in tools]
        return round_components(normalize_rows(np.stack(sums)))

    def _key(self, texts: Sequence[str]) -> str:
        """Return a hash of everything that the vector depends on."""
        digest = sha256(f"{_RECIPE} {self._embedder.dimensions}".encode())
        for text in (self._embedder.identity, *texts):
            encoded = text.encode("utf-8", "replace")
            digest.update(b"%d:" % len(encoded) + encoded)
        return digest.hexdigest()


class _RecentVectors:
    """The vectors of the queries that were asked last; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def get(self, texts: Iterable[str]) -> dict[str, Vector]:
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in known:
                self._vectors.move_to_end(text)
            return known

    def put(self, vectors: Mapping[str, Vector]) -> None:
        with self._lock:
            # A copy, so that one row does not keep the matrix of its batch.
            self._vectors.update((text, vector.copy()) for text, vector in vectors.items())
            while len(self._vectors) > _MAX_RECENT_QUERIES:
                self._vectors.popitem(last=False)


def _wish(query: str) -> str:
    """Return the part of a query that is embedded: without quotations, which are values."""
    wish = QUOTATION.sub(" ", query[:_MAX_QUERY_CHARS])
    if not any(map(str.isalnum, wish)):
        wish = query
    return " ".join(wish.split())


def vector_ids(tool: Tool) -> list[str]:
    """Return the ids of a tool's vectors: its name, and one for each of several languages."""
    languages = len(_descriptions(field_texts(tool)))
    further = range(1, languages + 1) if languages > 1 else ()
    return [tool.name, *(f"{tool.name}{_FURTHER}{number}" for number in further)]


def name_of(vector_id: str) -> str:
    """Return the name of the tool that a vector belongs to."""
    return vector_id.partition(_FURTHER)[0]


def _descriptions(fields: Mapping[FieldName, list[str]]) -> list[str]:
    """Return the description in each script, and at least one text."""
    found = by_script(" ".join(fields.get("description", ())))
    return [own.strip(_AROUND_TRANSLATION) for own in found] if len(found) > 1 else found


def _texts(tool: Tool) -> list[tuple[str, ...]]:
    """Return the texts of a tool that are embedded, then those in each of several languages."""
    fields = field_texts(tool)
    described = " ".join(fields.get("description", ()))
    about = " ".join(fields.get("parameter_texts", ()))
    descriptions = _descriptions(fields)
    found = [_texts_in(tool, fields, described, about)]
    if len(descriptions) > 1:
        parts = by_script(about, min_words=1)
        found += (_texts_in(tool, fields, own, _about_in(parts, own)) for own in descriptions)
    return found


def _texts_in(
    tool: Tool, fields: Mapping[FieldName, list[str]], described: str, about: str
) -> tuple[str, ...]:
    name = ", ".join((_spoken(tool.name), *fields.get("aliases", ())))
    both = f"{name}: {described}" if described else ""
    parameters = " ".join(islice(fields.get("parameters", ()), _MAX_PARAMETERS))
    parts = name, described, both, parameters, about[:_MAX_PARAMETER_TEXTS_CHARS]
    return tuple(part for part in parts if part)


def _about_in(texts: Sequence[str], described: str) -> str:
    """Return the text in the language of a description, or the first one."""
    wanted = scripts_in(described)
    return next((text for text in texts if scripts_in(text) & wanted), texts[0])


def _spoken(name: str) -> str:
    """Return an identifier as words: `createGitHubIssue` is create git hub issue."""
    return " ".join(_WORD_EDGE.sub(" ", name).split()).lower()
