"""Test doubles for bots: a stand-in provider server, its rule checker, cache checks.

Example:
    >>> from tool_search.testing import ModelReply, ScriptedModel, StandInServer
    >>> with StandInServer(model=ScriptedModel([ModelReply(text="Hi.")])) as server:
    ...     url = server.openai_base_url  # for openai.AsyncOpenAI(base_url=url)
    >>> server.requests
    ()
"""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
