from tool_search.adapters.openai_chat.history import history_from_wire as history_from_wire
from tool_search.adapters.openai_chat.provider import OpenAIChatProvider as OpenAIChatProvider
from tool_search.adapters.openai_chat.reply import from_wire as from_wire
from tool_search.adapters.openai_chat.wire import encode as encode
from tool_search.adapters.openai_chat.wire import encode_result as encode_result
from tool_search.adapters.openai_chat.wire import encode_tools as encode_tools
from tool_search.adapters.openai_chat.wire import to_wire as to_wire
