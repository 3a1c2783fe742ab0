from tool_search.adapters.astrbot.plugin import AstrBotToolSearch as AstrBotToolSearch
from tool_search.adapters.astrbot.plugin import ConversationId as ConversationId
