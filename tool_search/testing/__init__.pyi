# The names of `tool_search.testing`, each with its module.

from tool_search.testing.anthropic.rules import check_anthropic as check_anthropic
from tool_search.testing.models.keyword import KeywordModel as KeywordModel
from tool_search.testing.models.scripted import ModelCall as ModelCall
from tool_search.testing.models.scripted import ModelReply as ModelReply
from tool_search.testing.models.scripted import ScriptedModel as ScriptedModel
from tool_search.testing.models.scripted import ScriptExhaustedError as ScriptExhaustedError
from tool_search.testing.models.scripted import StandInModel as StandInModel
from tool_search.testing.models.tool_trial import ToolTrial as ToolTrial
from tool_search.testing.openai_chat.rules import check_openai_chat as check_openai_chat
from tool_search.testing.openai_responses.rules import (
    check_openai_responses as check_openai_responses,
)
from tool_search.testing.prefix import PrefixCause as PrefixCause
from tool_search.testing.prefix import PrefixChange as PrefixChange
from tool_search.testing.prefix import prefix_change as prefix_change
from tool_search.testing.server.captured import CapturedRequest as CapturedRequest
from tool_search.testing.server.dialects import UnknownDialectError as UnknownDialectError
from tool_search.testing.server.dialects import check_request as check_request
from tool_search.testing.server.endpoint import Endpoint as Endpoint
from tool_search.testing.server.faults import Fault as Fault
from tool_search.testing.server.faults import FaultPlan as FaultPlan
from tool_search.testing.server.server import StandInServer as StandInServer
from tool_search.testing.server.server import StandInServerError as StandInServerError
from tool_search.testing.view import ModelView as ModelView
from tool_search.testing.view import ViewCall as ViewCall
from tool_search.testing.view import ViewMessage as ViewMessage
from tool_search.testing.view import ViewResult as ViewResult
from tool_search.testing.view import VisibleTool as VisibleTool
from tool_search.testing.violations import Violation as Violation
