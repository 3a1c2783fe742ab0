"""Words for one action that APIs use for each other, in three languages.

Written from general knowledge of how operations are named, not from any data
set. A word stands here only if another of its row could take its place in most
tools' names; words with many other meanings (set, make, run) stand in no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tool_search.search.tokenizer import pieces

__all__ = ["related_terms"]

_ROWS = """
get read fetch retrieve obtain 获取 查询 读取 получить прочитать узнать
create add new insert 创建 新增 添加 新建 создать добавить создание
delete remove erase 删除 移除 удалить удаление убрать
list show display view 列出 显示 查看 список показать вывести
search find lookup query 搜索 查找 查询 检索 найти искать поиск
update edit modify change 更新 修改 编辑 изменить обновить редактировать
send deliver post 发送 发出 寄送 отправить послать
open launch 打开 开启 открыть
close shut 关闭 закрыть
start begin launch 启动 开始 запустить начать
stop end halt terminate 停止 结束 остановить завершить
cancel abort 取消 撤销 отменить отмена
download 下载 скачать загрузка
upload 上传 загрузить выгрузить
convert transform 转换 换算 конвертировать преобразовать перевести
translate translation 翻译 перевести перевод
calculate compute 计算 вычислить посчитать рассчитать
buy purchase order 购买 下单 купить приобрести
pay payment 支付 付款 оплатить платеж заплатить
book reserve reservation 预订 预约 预定 забронировать бронирование
schedule arrange plan 安排 日程 запланировать назначить
check verify validate 检查 验证 核对 проверить проверка
recommend suggest 推荐 建议 рекомендовать посоветовать
compare comparison 比较 对比 сравнить сравнение
analyze analyse analysis 分析 проанализировать анализ
generate produce 生成 сгенерировать
copy duplicate clone 复制 копировать клонировать
move transfer 移动 转移 переместить
rename 重命名 переименовать
save store 保存 存储 сохранить
subscribe follow 订阅 关注 подписаться
register signup enroll 注册 报名 зарегистрировать
login signin 登录 войти вход
install setup 安装 установить
remind reminder 提醒 напомнить напоминание
notify notification alert 通知 уведомить уведомление
play 播放 воспроизвести включить
share 分享 共享 поделиться
summarize summary 总结 摘要 резюмировать
predict forecast 预测 предсказать прогноз
track monitor 跟踪 监控 追踪 отследить отслеживать
count total 统计 计数 подсчитать
merge combine 合并 объединить
split divide 拆分 分割 разделить
sort order rank 排序 сортировать
filter 筛选 过滤 отфильтровать
export 导出 экспортировать
import 导入 импортировать
enable activate 启用 激活 включить активировать
disable deactivate 禁用 停用 отключить выключить
"""
_LONGEST_ROW = 400


@cache
def related_terms() -> Mapping[str, tuple[str, ...]]:
    """For each term of the table the terms of its rows, itself left out."""
    related: dict[str, dict[str, None]] = {}
    for line in _ROWS.split("\n"):
        row = dict.fromkeys(_term(word) for word in line.split())
        for term in row:
            related.setdefault(term, {}).update(row)
    return {term: tuple(other for other in row if other != term) for term, row in related.items()}


def _term(word: str) -> str:
    """The longest term of a word: a pair of Chinese characters, or a stem."""
    terms = [term for piece in pieces(word, longest=_LONGEST_ROW) for term in piece.words]
    return max(terms, key=len)
