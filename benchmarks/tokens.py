"""Measures the error of ``estimate_tokens`` against real tokenizers.

Run, with a rank file from the npm package ``tiktoken`` (``encoders/o200k_base.json``,
``encoders/cl100k_base.json``) or ``@anthropic-ai/tokenizer`` (``claude.json``) and the
PyPI package ``tiktoken`` installed::

    python -m benchmarks.tokens o200k_base.json --data FOLDER [--json]

``FOLDER/*/tools.jsonl`` and ``FOLDER/*/queries.jsonl`` hold public tool-retrieval sets;
without ``--data`` only the sentences below are measured. Rows with an even number were
used to fit the rates, so the odd ones are reported; none of the sentences was used.
"""

import argparse
import base64
import importlib
import importlib.util
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tool_search.core.catalog.tool import estimate_tokens

Counter = Callable[[str], int]

_CHINESE_WORD = re.compile("[\u4e00-\u9fff]{2}")
_TIMED = ("tools, bfcl", "tools, ultratool_zh, Chinese", "chat, Russian", "chat, Chinese")
# Made of rows of the other sets, so some of their odd rows were used to fit.
_REPEATS = ("ultratool_zh2en", "union_en_dev")
_HOW_TO_GET = (
    "get one with `npm pack tiktoken` (encoders/o200k_base.json) or "
    "`npm pack @anthropic-ai/tokenizer` (claude.json), and `pip install tiktoken`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The error on one kind of text against one tokenizer.

    Attributes:
        kind: The kind of text.
        tokenizer: The rank file's name without its ending.
        texts: The number of texts.
        tokens: Their true tokens, summed.
        bias: Per cent by which the sum of the estimates misses ``tokens``.
        error: Mean absolute error a text, per cent.
    """

    kind: str
    tokenizer: str
    texts: int
    tokens: int
    bias: float
    error: float


def load_counter(ranks: Path) -> Counter:
    """Give a function that counts a text's true tokens.

    Args:
        ranks: A JSON file with ``pat_str``, ``special_tokens`` and ``bpe_ranks``: lines
            of a mark, the first rank, and base64 tokens in the order of their ranks.
    """
    rules: dict[str, Any] = json.loads(ranks.read_text(encoding="utf-8"))
    encoding = importlib.import_module("tiktoken").Encoding(
        ranks.stem,
        pat_str=rules["pat_str"],
        mergeable_ranks=dict(_ranked_tokens(rules["bpe_ranks"])),
        special_tokens=rules["special_tokens"],
    )
    # Claude's old tokenizer normalises its input first; OpenAI's do not.
    if ranks.stem == "claude":
        return lambda text: len(encoding.encode_ordinary(unicodedata.normalize("NFKC", text)))
    return lambda text: len(encoding.encode_ordinary(text))


def _ranked_tokens(lines: str) -> Iterator[tuple[bytes, int]]:
    for line in filter(None, lines.split("\n")):
        _, first, *tokens = line.split(" ")
        for offset, token in enumerate(tokens):
            yield base64.b64decode(token), int(first) + offset


def collect_texts(data: Path | None) -> dict[str, Sequence[str]]:
    """Give the texts to measure on, by kind, in a fixed order."""
    texts: dict[str, Sequence[str]] = {}
    for folder in sorted(data.iterdir()) if data else ():
        if folder.name not in _REPEATS:
            texts |= _set_texts(folder)
    texts["chat, Russian"] = _RUSSIAN
    texts["tools, Russian"] = [_russian_tool(*row) for row in _RUSSIAN_TOOLS]
    texts["chat, Chinese"] = _CHINESE
    texts["chat, mixed scripts"] = _MIXED
    texts["chat, accented Latin"] = _ACCENTED
    texts["chat, Japanese and Korean"] = _JAPANESE_KOREAN
    return {kind: rows for kind, rows in texts.items() if rows}


def _set_texts(folder: Path) -> dict[str, Sequence[str]]:
    name = folder.name.lstrip("_")
    tools = [_compact(row) for row in _read_rows(folder / "tools.jsonl")][1::2]
    chinese = [text for text in tools if _CHINESE_WORD.search(text)]
    queries = [str(row["query"]) for row in _read_rows(folder / "queries.jsonl")][1::2]
    return {
        f"tools, {name}": [text for text in tools if not _CHINESE_WORD.search(text)],
        f"tools, {name}, Chinese": chinese,
        f"queries, {name}": queries,
    }


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _compact(row: Mapping[str, Any]) -> str:
    shown = {key: row[key] for key in ("name", "description", "parameters") if key in row}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _russian_tool(name: str, description: str, argument: str, meaning: str) -> str:
    properties = {argument: {"type": "string", "description": meaning}}
    parameters = {"type": "object", "properties": properties, "required": [argument]}
    return _compact({"name": name, "description": description, "parameters": parameters})


def measure(kind: str, texts: Iterable[str], tokenizer: str, count: Counter) -> Row:
    """Compare the estimates of some texts with a tokenizer's counts."""
    pairs = [(estimate_tokens(text), count(text)) for text in texts if text]
    true = sum(tokens for _, tokens in pairs)
    return Row(
        kind=kind,
        tokenizer=tokenizer,
        texts=len(pairs),
        tokens=true,
        bias=round(100 * (sum(estimate for estimate, _ in pairs) / true - 1), 1),
        error=round(100 * sum(abs(e / t - 1) for e, t in pairs) / len(pairs), 1),
    )


def measure_speed(texts: Iterable[str], *, megabytes: int = 5) -> float:
    """Give the seconds that one estimate of the texts takes, repeated to a size.

    Args:
        texts: The texts, joined by line ends.
        megabytes: Millions of UTF-8 bytes to repeat them to.
    """
    joined = "\n".join(texts)
    repeated = joined * (1 + megabytes * 1_000_000 // len(joined.encode()))
    text = repeated.encode()[: megabytes * 1_000_000].decode(errors="ignore")
    start = time.perf_counter()
    estimate_tokens(text)
    return time.perf_counter() - start


def format_table(rows: Sequence[Row]) -> str:
    """Lay rows out as a Markdown table: a line a kind, a column a tokenizer."""
    names = list(dict.fromkeys(row.tokenizer for row in rows))
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        line = cells.setdefault(row.kind, {"texts": str(row.texts)})
        line[row.tokenizer] = f"{row.bias:+.1f} / {row.error:.1f}"
    width = max(map(len, cells))
    head = f"| {'kind of text':{width}} | texts | " + " | ".join(f"{n:>13}" for n in names) + " |"
    lines = [head, "|---|--:|" + "--:|" * len(names)]
    for kind, line in cells.items():
        figures = " | ".join(f"{line[name]:>13}" for name in names)
        lines.append(f"| {kind:{width}} | {line['texts']:>5} | {figures} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or the reason why there is none; give the exit status."""
    parser = argparse.ArgumentParser(description="Error of estimate_tokens, in per cent.")
    parser.add_argument("ranks", nargs="*", type=Path, help="rank files (JSON); " + _HOW_TO_GET)
    parser.add_argument("--data", type=Path, help="folder of tool-retrieval sets")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    options = parser.parse_args(arguments)
    if reason := _reason_to_skip(options.ranks):
        print(f"skipped: {reason}; {_HOW_TO_GET}", file=sys.stderr)
        return 0
    texts = collect_texts(options.data)
    rows = [
        measure(kind, texts[kind], ranks.stem, count)
        for ranks, count in [(ranks, load_counter(ranks)) for ranks in options.ranks]
        for kind in texts
    ]
    seconds = {kind: round(measure_speed(texts[kind]), 2) for kind in texts if kind in _TIMED}
    if options.json:
        report = {"rows": [asdict(row) for row in rows], "seconds_for_5_mb": seconds}
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        print("bias of the sum / mean absolute error a text, per cent\n")
        print(format_table(rows))
        print("\nseconds for 5 MB: " + ", ".join(f"{k} {s:.2f}" for k, s in seconds.items()))
    return 0


def _reason_to_skip(ranks: Sequence[Path]) -> str | None:
    if not ranks:
        return "no rank file was named"
    if missing := [path.name for path in ranks if not path.is_file()]:
        return f"no rank file {', '.join(missing)}"
    if importlib.util.find_spec("tiktoken") is None:
        return "the package tiktoken is not installed"
    return None


_RUSSIAN = (
    "Привет! Напомни мне, пожалуйста, завтра в девять утра позвонить в банк.",
    "Какая погода будет в Казани на выходных? Брать ли с собой зонт?",
    "Я хочу забронировать столик на четверых в ресторане недалеко от центра.",
    "Переведи это письмо на английский и сделай тон чуть более официальным.",
    "Сколько стоит доставка посылки весом три килограмма из Москвы в Новосибирск?",
    "Найди в моей почте счёт от интернет-провайдера за октябрь и перешли его бухгалтеру.",
    "Спасибо, всё получилось. А можно ли сделать то же самое для остальных файлов в папке?",
    "Не понимаю, почему сборка падает: вчера тесты проходили, а сегодня ошибка в миграции.",
    "Отмени, пожалуйста, мою запись к врачу на четверг и предложи свободное время в пятницу.",
    "Покажи последние пять заказов и скажи, какой из них ещё не оплачен.",
    "Включи музыку потише и выключи свет в спальне через двадцать минут.",
    "Мне нужен краткий пересказ этой статьи: не больше трёх предложений, без лишних деталей.",
    "Где сейчас мой рейс? Самолёт должен был вылететь из Шереметьева полтора часа назад.",
    "Подскажи рецепт борща без мяса, чтобы приготовить его за час.",
    "Создай задачу «Обновить документацию» и назначь её на Анну, срок — до конца месяца.",
    "Посчитай, сколько я потратил на такси в прошлом месяце, и сравни с сентябрём.",
    "К сожалению, сервер не отвечает. Попробуйте повторить запрос через несколько минут.",
    "Конечно! Ближайшая аптека работает круглосуточно, она находится в двух кварталах от вас.",
    "Инструмент вернул пустой ответ, поэтому я уточню параметры поиска и попробую ещё раз.",
    "ок, давай так",
    "Ты ошибся: столица Австралии не Сидней, а Канберра.",
    "Составь план поездки по Золотому кольцу на неделю: мы едем с детьми и любим музеи.",
    "Объясни простыми словами, чем отличается процесс от потока и когда что использовать.",
    "Добавь в корзину молоко, хлеб, десяток яиц и полкило помидоров.",
)
_RUSSIAN_TOOLS = (
    ("get_weather", "Возвращает прогноз погоды для города.", "city", "Название города"),
    ("book_table", "Бронирует столик в ресторане на имя гостя.", "name", "Имя гостя"),
    ("send_letter", "Отправляет письмо получателю.", "address", "Адрес электронной почты"),
    ("find_flight", "Ищет рейсы между двумя городами.", "origin", "Город вылета"),
    ("convert_currency", "Переводит сумму по курсу на сегодня.", "amount", "Сумма в рублях"),
    ("track_parcel", "Показывает, где находится посылка.", "code", "Номер отправления"),
    ("create_task", "Создаёт задачу в выбранном проекте.", "title", "Краткое название задачи"),
    ("turn_off_light", "Выключает свет в указанной комнате.", "room", "Название комнаты"),
    ("search_orders", "Находит заказы покупателя за период.", "period", "Период, месяцев"),
    ("summarise_text", "Составляет краткий пересказ текста.", "text", "Исходный текст"),
)
_CHINESE = (
    "你好，明天早上八点叫我起床，顺便告诉我今天的天气。",
    "帮我订一张下周五从上海到成都的机票，靠窗的座位。",
    "这个错误是什么意思？昨天还能正常运行，今天就报错了。",
    "请把下面这段话翻译成英文，语气正式一点。",
    "我上个月打车一共花了多少钱？和九月份比是多了还是少了？",
    "好的，已经为您取消了星期四的预约，还需要别的帮助吗？",
    "附近有没有二十四小时营业的药店？",
    "把客厅的灯关掉，空调调到二十六度。",
    "给我推荐三本适合初学者看的历史书，并简单说说理由。",
    "抱歉，工具没有返回结果，我换一个关键词再试一次。",
    "谢谢，收到了！",
    "请根据这份会议记录整理出待办事项，并且按照负责人分组，每一项写明截止日期。",
)
_MIXED = (
    "Запусти `pytest -q` и пришли мне traceback, если упадёт test_login.",
    "Привет! 👋 Можешь открыть https://example.com/docs и найти раздел про API?",
    '请调用 get_weather 工具，参数 city="Москва"，units=metric。',
    "Ошибка 404: файл /srv/app/config.yaml не найден 😕 Проверь путь и права.",
    "OK, готово ✅ Отчёт за Q3 лежит в Google Drive: report_2026-09-30.xlsx (12,4 МБ).",
    'The tool `создать_заказ` returned {"статус":"ок","id":48213}, so the order is placed.',
    "我在 GitHub 上提了一个 issue，标题是「Timeout when calling search_tools」，麻烦看一下 🙏",
    "Встреча в 15:30 (GMT+3), ссылка на Zoom в календаре. See you there! 🎉",
    "如何把 DataFrame 的 index 转成 column？我用的是 pandas 2.2。",
    "Сравни iPhone 17 и Pixel 11 по цене, камере и батарее 🔋 в таблице.",
    "Переведи на китайский: «Спасибо за помощь!» — 谢谢你的帮助！",
    "Name: Zoë, город: Санкт-Петербург, 电话: +7 812 555-01-23",
)
_ACCENTED = (
    "Où se trouve la pharmacie la plus proche ? J'ai besoin d'un médicament avant ce soir.",
    "Können Sie mir bitte erklären, warum die Überweisung noch nicht ausgeführt wurde?",
    "¿Cuánto cuesta el envío a Perú y cuándo llegaría el paquete?",
    "Você pode reservar uma mesa para amanhã às oito? Somos só três pessoas.",
    "Proszę przypomnieć mi jutro o dziewiątej, żebym zadzwonił do księgowości.",
    "Prosím, najdi mi nejbližší vlak z Brna do Plzně dnes večer.",
    "Yarın İstanbul'da hava nasıl olacak, şemsiye almalı mıyım?",
    "Hãy đặt cho tôi một chuyến xe đến sân bay lúc sáu giờ sáng mai.",
)
_JAPANESE_KOREAN = (
    "明日の朝九時に銀行へ電話するように、リマインダーを設定してください。",
    "このファイルを英語に翻訳して、もう少し丁寧な文章にしてもらえますか？",
    "エラーが出ました。ログを確認して原因を教えてください。",
    "今週末の東京の天気はどうなりますか。傘は必要でしょうか。",
    "내일 아침 아홉 시에 은행에 전화하라고 알려 주세요.",
    "이번 주말 부산 날씨는 어때요? 우산을 챙겨야 할까요?",
    "이 문서를 영어로 번역하고 조금 더 공손한 말투로 바꿔 주세요.",
    "오류가 발생했습니다. 로그를 확인하고 원인을 알려 주세요.",
)

if __name__ == "__main__":
    sys.exit(main())
