"""Doubles for tests of bots: a stand-in provider server, its rule checker, cache checks.

Example:
    >>> from tool_search.testing import ModelReply, ScriptedModel, StandInServer
    >>> with StandInServer(model=ScriptedModel([ModelReply(text="Hi.")])) as server:
    ...     url = server.openai_base_url  # for openai.AsyncOpenAI(base_url=url)
    >>> server.requests
    ()
"""

from __future__ import annotations

from tool_search.testing.captured import CapturedRequest
from tool_search.testing.dialects import UnknownDialectError, check_request
from tool_search.testing.endpoint import Endpoint
from tool_search.testing.faults import Fault, FaultPlan
from tool_search.testing.keyword_model import KeywordModel
from tool_search.testing.models import (
    ModelCall,
    ModelReply,
    ScriptedModel,
    ScriptExhaustedError,
    StandInModel,
)
from tool_search.testing.prefix_changes import PrefixCause, PrefixChange, prefix_change
from tool_search.testing.rules_anthropic import check_anthropic
from tool_search.testing.rules_openai_chat import check_openai_chat
from tool_search.testing.rules_openai_responses import check_openai_responses
from tool_search.testing.server import StandInServer, StandInServerError
from tool_search.testing.tool_trial import ToolTrial
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
