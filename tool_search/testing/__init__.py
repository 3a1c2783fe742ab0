"""Doubles for tests of bots: a stand-in provider server, its rule checker, cache checks.

Example:
    >>> from tool_search.testing import ModelReply, ScriptedModel, StandInServer
    >>> with StandInServer(model=ScriptedModel([ModelReply(text="Hi.")])) as server:
    ...     url = server.openai_base_url  # for openai.AsyncOpenAI(base_url=url)
    >>> server.requests
    ()
"""

from __future__ import annotations

from tool_search.testing.anthropic.rules import check_anthropic
from tool_search.testing.models.keyword import KeywordModel
from tool_search.testing.models.scripted import (
    ModelCall,
    ModelReply,
    ScriptedModel,
    ScriptExhaustedError,
    StandInModel,
)
from tool_search.testing.models.tool_trial import ToolTrial
from tool_search.testing.openai_chat.rules import check_openai_chat
from tool_search.testing.openai_responses.rules import check_openai_responses
from tool_search.testing.prefix import PrefixCause, PrefixChange, prefix_change
from tool_search.testing.server.captured import CapturedRequest
from tool_search.testing.server.dialects import UnknownDialectError, check_request
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.server.faults import Fault, FaultPlan
from tool_search.testing.server.server import StandInServer, StandInServerError
from tool_search.testing.view import ModelView, ViewCall, ViewMessage, ViewResult, VisibleTool
from tool_search.testing.violations import Violation

__all__ = [
    "CapturedRequest",
    "Endpoint",
    "Fault",
    "FaultPlan",
    "KeywordModel",
    "ModelCall",
    "ModelReply",
    "ModelView",
    "PrefixCause",
    "PrefixChange",
    "ScriptExhaustedError",
    "ScriptedModel",
    "StandInModel",
    "StandInServer",
    "StandInServerError",
    "ToolTrial",
    "UnknownDialectError",
    "ViewCall",
    "ViewMessage",
    "ViewResult",
    "Violation",
    "VisibleTool",
    "check_anthropic",
    "check_openai_chat",
    "check_openai_responses",
    "check_request",
    "prefix_change",
]
