"""Queries with a tool that fits each, and no other of these: a yardstick for embedders.

Written from general knowledge of what tools do, not from any data set.
"""

from __future__ import annotations

from tool_search.catalog.catalog import Tool

__all__ = ["FITTING_PAIRS"]

_ROWS = """
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


FITTING_PAIRS: tuple[tuple[str, Tool], ...] = tuple(map(_pair, _ROWS.strip().split("\n")))
"""Queries and tools, in three languages."""
