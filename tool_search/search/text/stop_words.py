"""Stop words: words that do not say which tool is meant.

The lists are our own and short on purpose. Published stop lists have `get`, `find`,
`open`, `run` and other verbs that name tools. A word is in these lists only if it is
grammar, courtesy or the rest of a contraction in nearly every use.
"""

from __future__ import annotations

__all__ = ["CHINESE_STOP_CHARACTERS", "CHINESE_STOP_PHRASES", "STOP_WORDS"]

_ENGLISH = """
a an the this that these those it its itself
i me my mine myself we us our ours you your yours he him his she her hers they them their theirs
am is are was were be been being do does did doing done has have had having
can could will would shall should may might must
and or nor but if then else than so as because while whether though although
of in on at by for with from to into onto about between through during over under
what which who whom whose when where why how
not no yes please thanks thank hi hello hey there here
s t re ve ll d m don doesn didn isn aren wasn weren won couldn shouldn wouldn
just also too very some any such each both own same other only
let want wants wanted need needs needed like help
"""

_RUSSIAN = """
и а но или либо да не ни же ли бы ж б то что чтобы как так когда если хотя пока
в во на с со к ко по о об обо от до из изо за у при для про без под над между через перед
я мне меня мной мы нам нас нами ты тебе тебя тобой вы вам вас вами
он она оно они его ее ей ему им их ними него нее ней нем
мой моя мое мои моего моей моих моем моим наш наша наше наши нашего нашей наших
твой твоя твое твои ваш ваша ваше ваши свой своя свое свои своего своей своих
этот эта это эти этого этой этих этом этому тот та те того той тех
какой какая какое какие какого каких который которая которое которые
которого которой которых
кто где куда откуда почему зачем сколько чей
есть быть был была было были будет будут буду
мочь могу можешь может можете можем можно нужно нужен нужна нужны надо хочу хочешь
хотел хотела хотим
пожалуйста спасибо привет здравствуйте помоги помогите
уже еще очень тоже также только лишь все всё вот там тут здесь
"""

STOP_WORDS = frozenset(word.replace("ё", "е") for word in (_ENGLISH + _RUSSIAN).split())
"""English and Russian stop words, in lower case, with `е` for `ё`."""

_CHINESE = """
请帮我 请帮忙 请问 请你 请您 帮我 帮忙 帮助我 麻烦你 麻烦您 我想要 我想 我要 我需要 需要你 需要
你能 您能 能不能 能否 可不可以 可以 是否 是不是 有没有 一下 一些 一个 这个 那个 这些 那些
什么 怎么样 怎么 怎样 如何 为什么 哪些 哪个 哪里 多少 以及 并且 而且 然后 因为 所以 如果 但是
或者 还是 已经 正在 关于 对于 我们 你们 他们 她们 它们 自己 我的 你的 他的 她的 谢谢 你好 您好
為什麼 什麼 怎麼 這個 那個 這些 請問 請幫我 幫我 我們 你們 他們 關於 對於 並且 如果 還是 已經
謝謝
"""

CHINESE_STOP_PHRASES = tuple(sorted(_CHINESE.split(), key=lambda phrase: (-len(phrase), phrase)))
"""Chinese stop words of several characters, longest first."""

CHINESE_STOP_CHARACTERS = frozenset(
    "的了着过吗呢吧啊呀嘛我你您他她它们這这那哪是在和与及或也都就还很太再又"
    "把被给让从对为以而但并且若则之其于所将请帮想要会能可个些么个個們還為與對從將請幫會"
    "のはがをにへとでもやかねよ"
)
"""Characters that are not a term by themselves; a pair of them is not one either."""
