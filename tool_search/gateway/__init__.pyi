from tool_search.gateway.config import GatewayConfig as GatewayConfig
from tool_search.gateway.exposure import ExposedTools as ExposedTools
from tool_search.gateway.exposure import ExposureSettings as ExposureSettings
from tool_search.gateway.loading import gateway_config as gateway_config
from tool_search.gateway.loading import load_gateway_config as load_gateway_config
from tool_search.gateway.names import GatewayNames as GatewayNames
from tool_search.gateway.names import gateway_name as gateway_name
from tool_search.gateway.names import split_name as split_name
