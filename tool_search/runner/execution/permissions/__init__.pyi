from tool_search.runner.execution.permissions.check import AskUser as AskUser
from tool_search.runner.execution.permissions.check import PermissionAnswer as PermissionAnswer
from tool_search.runner.execution.permissions.check import PermissionRequest as PermissionRequest
from tool_search.runner.execution.permissions.check import Permissions as Permissions
from tool_search.runner.execution.permissions.grants import Grant as Grant
from tool_search.runner.execution.permissions.grants import GrantBook as GrantBook
from tool_search.runner.execution.permissions.grants import GrantFile as GrantFile
from tool_search.runner.execution.permissions.grants import GrantStore as GrantStore
