from tool_search.adapters.openai_responses.history import history_from_wire as history_from_wire
from tool_search.adapters.openai_responses.provider import (
    OpenAIResponsesProvider as OpenAIResponsesProvider,
)
from tool_search.adapters.openai_responses.reply import from_wire as from_wire
from tool_search.adapters.openai_responses.wire import encode as encode
from tool_search.adapters.openai_responses.tools import encode_result as encode_result
from tool_search.adapters.openai_responses.wire import encode_tools as encode_tools
from tool_search.adapters.openai_responses.wire import to_wire as to_wire
