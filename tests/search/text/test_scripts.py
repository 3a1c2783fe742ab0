"""Search across scripts: traditional Chinese, Japanese, Korean, full-width and mixed text."""

from __future__ import annotations

import pytest

from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index

TOOLS = (
    Tool(name="query_train", description="查询两个城市之间的火车票和时刻表"),
    Tool(name="發送郵件", description="發送電子郵件給聯絡人"),
    Tool(name="search_image", description="搜索图片"),
    Tool(name="tenki_yohou", description="東京の天気予報を調べる"),
    Tool(name="nalssi", description="서울의 날씨 예보를 확인합니다"),
    Tool(name="run_code", description="使用Python3运行代码，支持JSON格式"),
    Tool(name="convert_currency", description="Converts an amount between currencies."),
)


def names(query: str, *tools: Tool) -> list[str]:
    """The names that a search finds."""
    found = build_index(tools or TOOLS).search(query, limit=5).matches
    return [match.name for match in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("查詢火車票", "query_train"),
        ("发送邮件给联系人", "發送郵件"),
        ("发送邮件", "發送郵件"),
        ('"電子郵件"', "發送郵件"),
        ('"电子邮件"', "發送郵件"),
        ("火車* OR 查詢", "query_train"),
        ("搜索圖片", "search_image"),
        ("東京の天気", "tenki_yohou"),
        ("天気予報", "tenki_yohou"),
        ("서울 날씨", "nalssi"),
        ("날씨를 알려줘", "nalssi"),
        ("ｐｙｔｈｏｎ 代码", "run_code"),
        ("运行python代码", "run_code"),
        ("ＪＳＯＮ格式", "run_code"),
        ("ｃｏｎｖｅｒｔ　ｃｕｒｒｅｎｃｙ", "convert_currency"),
    ],
)
def test_search_finds_across_scripts(query: str, expected: str) -> None:
    assert names(query)[:1] == [expected]


@pytest.mark.parametrize("query", ["兔骗", "收锁土偏", "tu pian", "祸扯飘", "茶寻"])
def test_search_homophones_do_not_match(query: str) -> None:
    assert not {"search_image", "query_train"} & set(names(query))


@pytest.mark.parametrize("query", ["的", "请帮我一下", "請問這個", "我们是不是", "什麼"])
def test_search_chinese_function_words_find_nothing(query: str) -> None:
    assert names(query, *TOOLS[1:], Tool(name="x", description="我们的什么请问这个是不是")) == []


def test_search_unmatched_chinese_is_reported_as_written() -> None:
    result = build_index(TOOLS).search("查詢火車票，蝴蝶標本", limit=5)
    assert result.unmatched == ("蝴蝶標本",)
