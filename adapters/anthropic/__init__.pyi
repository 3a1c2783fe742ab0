from tool_search.adapters.anthropic.history import history_from_wire as history_from_wire
from tool_search.adapters.anthropic.provider import AnthropicProvider as AnthropicProvider
from tool_search.adapters.anthropic.reply import from_wire as from_wire
from tool_search.adapters.anthropic.wire import MAX_TOKENS as MAX_TOKENS
from tool_search.adapters.anthropic.wire import encode as encode
from tool_search.adapters.anthropic.wire import encode_result as encode_result
from tool_search.adapters.anthropic.wire import encode_tools as encode_tools
from tool_search.adapters.anthropic.wire import to_wire as to_wire
