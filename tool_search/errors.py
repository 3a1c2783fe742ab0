"""The errors of this library, in one tree.

::

    ToolSearchError
    ├── ConfigurationError            a setting, a YAML file or the environment is wrong
    ├── CatalogError                  a tool definition or a catalog of them is wrong
    │   ├── InvalidToolError          one definition: its name or its schema
    │   └── DuplicateToolError        two definitions of one name
    ├── SearchError                   an index cannot be built or searched
    ├── RegistryError                 a registry cannot do what was asked
    │   ├── ToolNotFoundError         no tool, or no backend of a tool, is registered
    │   ├── InvalidBackendError       a backend without a name or an executor
    │   ├── InvalidCursorError        a cursor is stale or not one of this registry
    │   ├── UnstableOrderError        pages of an engine without a stable order
    │   └── InvalidDocsError          documentation of a tool is wrong or not there
    ├── SessionError                  a conversation cannot be started or continued
    ├── UnsupportedStrategyError      a named strategy that the model does not support
    ├── StoreError                    what is kept cannot be read or written
    │   └── UnreadableRecordError     one kept conversation cannot be read by this version
    ├── ToolCallError                 a tool that another tool called has failed
    ├── SourceError                   a server of tools cannot be reached, or refused a request
    ├── ProviderError                 one provider refused or could not be reached
    ├── AllProvidersFailedError       every provider of a turn failed; lists each cause
    └── NoAnswerError                 a turn ended without an answer of the model

A message says what is wrong, shows the value, and says what to do. Errors are in
English: they are for logs and engineers, not for users of a chat.
"""

from __future__ import annotations

from collections import abc
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AllProvidersFailedError",
    "CatalogError",
    "ConfigurationError",
    "DuplicateToolError",
    "InvalidBackendError",
    "InvalidCursorError",
    "InvalidDocsError",
    "InvalidToolError",
    "NoAnswerError",
    "ProviderError",
    "RegistryError",
    "SearchError",
    "SessionError",
    "SourceError",
    "StoreError",
    "ToolCallError",
    "ToolNotFoundError",
    "ToolSearchError",
    "UnreadableRecordError",
    "UnstableOrderError",
    "UnsupportedStrategyError",
]

_KEY_REFUSED = 401
_TRY_AGAIN = "try again, or add a fallback to providers"

StoreFault = Literal[
    "disk_full",
    "locked",
    "read_only",
    "missing",
    "no_permission",
    "damaged",
    "disk_failed",
    "foreign",
    "newer",
    "unreachable",
    "out_of_memory",
    "unreadable_record",
    "unknown",
]
"""The fault of a store. `foreign`: the file belongs to another program; `newer`: it is of a
later version; `missing`: its folder does not exist; `unreachable`: its server does not answer."""


class ToolSearchError(Exception):
    """The base of all errors of this library."""


class ConfigurationError(ToolSearchError):
    """An invalid setting; the message names the key and the allowed values."""


class CatalogError(ToolSearchError):
    """An invalid catalog, or an invalid file of one."""


class InvalidToolError(CatalogError):
    """An invalid tool definition; the message names the tool."""


class DuplicateToolError(CatalogError):
    """Two tools with one name, neither of them from a server."""


class SearchError(ToolSearchError):
    """An index that cannot be built, or an engine that failed in a search."""


class RegistryError(ToolSearchError):
    """A registry that cannot do what was asked."""


class ToolNotFoundError(RegistryError):
    """An id that no tool has, or a backend that the tool does not have."""


class InvalidBackendError(RegistryError):
    """A backend without a name or an executor, or one that is not of the tool."""


class InvalidCursorError(RegistryError):
    """A cursor that is malformed, or older than the last change of the registry."""


class UnstableOrderError(RegistryError):
    """A page that was asked of an engine without a stable order."""


class InvalidDocsError(RegistryError):
    """Documentation that is wrong, or a level that cannot be given."""


class SessionError(ToolSearchError):
    """A conversation that cannot be started or continued with the given arguments."""


class StoreError(ToolSearchError):
    """A store that cannot be read or written; the message names the file.

    Attributes:
        fault: The fault, for programs.
    """

    def __init__(self, message: str, *, fault: StoreFault = "unknown") -> None:
        super().__init__(message)
        self.fault: StoreFault = fault


class UnreadableRecordError(StoreError):
    """A kept conversation that was changed from outside, or is of a later version.

    Attributes:
        conversation: Its key; None if only its content is known.
    """

    def __init__(self, problem: str, *, conversation: str | None = None) -> None:
        named = "a conversation" if conversation is None else f"the conversation {conversation!r}"
        super().__init__(
            f"the record of {named} cannot be read: {problem}", fault="unreadable_record"
        )
        self.problem = problem
        self.conversation = conversation


class UnsupportedStrategyError(ToolSearchError):
    """A named strategy that the provider's model does not support, or an unknown one."""


class ToolCallError(ToolSearchError):
    """The failure of a tool that another tool called; has the text that a model would read."""


class SourceError(ToolSearchError):
    """A server of tools that cannot be reached, or that refused a request.

    Attributes:
        server: The server's name.
        code: The JSON-RPC code of its refusal; None: it did not answer.
        data: The further facts of its refusal, as it sent them.
    """

    def __init__(
        self, problem: str, *, server: str, code: int | None = None, data: object = None
    ) -> None:
        super().__init__(f"server {server!r}: {problem}")
        self.server = server
        self.code = code
        self.data = data


class ProviderError(ToolSearchError):
    """A request that a provider refused, or a provider that could not be reached.

    Attributes:
        provider: The provider's `id` in the configuration.
        status: The HTTP status, or None without an answer.
        code: The provider's own error type or code, or None.
        detail: The provider's message, without keys or headers.
        retry_after_s: The seconds to wait before the next request; None: it names none.
        picture: The address of the picture whose place the message names; empty: it names none.
        fields: The names of the fields of the request's body.
        remedy: What to do, if that is known; empty: it is not.
    """

    def __init__(
        self,
        detail: str,
        *,
        provider: str,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        fields: abc.Collection[str] = (),
        remedy: str = "",
        picture: str = "",
    ) -> None:
        answer = f"HTTP {status}" if status is not None else "no answer"
        named = f", {code}" if code else ""
        advice = f"; {remedy}" if remedy else ""
        super().__init__(f"provider {provider!r} failed ({answer}{named}): {detail}{advice}")
        self.provider = provider
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.picture = picture
        self.fields = frozenset(fields)
        self.remedy = remedy


class AllProvidersFailedError(ToolSearchError):
    """The failure of every provider that could answer a turn.

    Attributes:
        causes: The last error of each provider, by its `id`, in the order they were asked.
    """

    def __init__(self, causes: Mapping[str, ProviderError]) -> None:
        listed = "; ".join(f"{name}: {cause}" for name, cause in causes.items())
        # The same key will not be accepted the next time.
        is_key = bool(causes) and all(cause.status == _KEY_REFUSED for cause in causes.values())
        advice = "correct the keys, then ask again" if is_key else _TRY_AGAIN
        super().__init__(
            f"every provider failed ({len(causes)} asked): {listed}; the message is kept: {advice}"
        )
        self.causes = dict(causes)


class NoAnswerError(ToolSearchError):
    """A turn without an answer of the model; the conversation can go on.

    Attributes:
        text: The text for the user of a chat, in the language of the conversation.
        reason: The `stop_reason` of the turn's `Done`, such as `refusal` or `timeout`.
    """

    def __init__(self, cause: str, *, text: str, reason: str) -> None:
        super().__init__(
            f"the turn ended without an answer ({reason}): {cause}; the conversation is kept: "
            "ask again or otherwise, or show `text` of this error"
        )
        self.text = text
        self.reason = reason
