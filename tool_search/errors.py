"""Every error this library raises, in one tree.

::

    ToolSearchError
    ├── ConfigurationError            a setting, a YAML file or the environment is wrong
    ├── CatalogError                  a tool definition or a catalog of them is wrong
    │   ├── InvalidToolError          one definition: its name or its schema
    │   └── DuplicateToolError        two definitions of one name
    ├── SearchError                   an index cannot be built or asked
    ├── SessionError                  a conversation cannot be started or continued so
    ├── UnsupportedStrategyError      a named strategy that the model cannot honour
    ├── StoreError                    what is kept cannot be read or written
    │   └── UnreadableRecordError     one kept conversation is none of this version
    ├── ToolCallError                 a tool that another tool called has failed
    ├── ProviderError                 one provider refused or could not be reached
    ├── AllProvidersFailedError       every provider of a turn failed; lists each cause
    └── NoAnswerError                 a turn ended without an answer of the model

A message says what was wrong, shows the value, and says what to do. Errors
are English: they are for logs and engineers, never for the chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AllProvidersFailedError",
    "CatalogError",
    "ConfigurationError",
    "DuplicateToolError",
    "InvalidToolError",
    "NoAnswerError",
    "ProviderError",
    "SearchError",
    "SessionError",
    "StoreError",
    "ToolCallError",
    "ToolSearchError",
    "UnreadableRecordError",
    "UnsupportedStrategyError",
]

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
    "unreadable_record",
    "unknown",
]
"""What is wrong with a store. `foreign` is a file of somebody else's, `newer` one of a later
version, `missing` a folder that is not there."""


class ToolSearchError(Exception):
    """The root of every error of this library."""


class ConfigurationError(ToolSearchError):
    """A setting is wrong; the message names the key and what is allowed."""


class CatalogError(ToolSearchError):
    """A catalog, or the file it is read from, is wrong."""


class InvalidToolError(CatalogError):
    """One tool definition is wrong; the message names the tool."""


class DuplicateToolError(CatalogError):
    """Two tools that no server lists have the same name: which is meant cannot be known."""


class SearchError(ToolSearchError):
    """An index cannot be built, or an engine failed while it was asked."""


class SessionError(ToolSearchError):
    """A conversation cannot be started or continued with what it was given."""


class StoreError(ToolSearchError):
    """What a store keeps cannot be read or written; the message names the place.

    Attributes:
        fault: What is wrong, for programs.
    """

    def __init__(self, message: str, *, fault: StoreFault = "unknown") -> None:
        super().__init__(message)
        self.fault: StoreFault = fault


class UnreadableRecordError(StoreError):
    """One kept conversation was tampered with, or is of a later version.

    Attributes:
        conversation: Its key; None where only its content is known.
    """

    def __init__(self, problem: str, *, conversation: str | None = None) -> None:
        named = "a conversation" if conversation is None else f"the conversation {conversation!r}"
        super().__init__(
            f"the record of {named} cannot be read: {problem}", fault="unreadable_record"
        )
        self.problem = problem
        self.conversation = conversation


class UnsupportedStrategyError(ToolSearchError):
    """A strategy was named that the provider's model cannot honour."""


class ToolCallError(ToolSearchError):
    """A tool that another tool called has failed; says what the model would have read."""


class ProviderError(ToolSearchError):
    """One provider refused a request, or could not be reached.

    Attributes:
        provider: The provider's `id` in the configuration.
        status: The HTTP status, or None where no answer came.
        code: The provider's own error type or code, where it names one.
        detail: The provider's message, without keys or headers.
        retry_after_s: The seconds after which it wants to be asked again; None: it names none.
    """

    def __init__(
        self,
        detail: str,
        *,
        provider: str,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        answer = f"HTTP {status}" if status is not None else "no answer"
        named = f", {code}" if code else ""
        super().__init__(f"provider {provider!r} failed ({answer}{named}): {detail}")
        self.provider = provider
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s


class AllProvidersFailedError(ToolSearchError):
    """Every provider that could take a turn over has failed.

    Attributes:
        causes: The last error of each provider, by its `id`, in the order they were asked.
    """

    def __init__(self, causes: Mapping[str, ProviderError]) -> None:
        listed = "; ".join(f"{name}: {cause}" for name, cause in causes.items())
        super().__init__(
            f"every provider failed ({len(causes)} asked): {listed}; "
            "the message is kept: try again, or add a fallback to providers"
        )
        self.causes = dict(causes)


class NoAnswerError(ToolSearchError):
    """A turn ended without an answer of the model; the conversation can go on.

    Attributes:
        text: What a chat shows its user instead, in the language of the conversation.
        reason: The `stop_reason` of the turn's `Done`, such as `refusal` or `timeout`.
    """

    def __init__(self, cause: str, *, text: str, reason: str) -> None:
        super().__init__(
            f"the turn ended without an answer ({reason}): {cause}; the conversation is kept: "
            "ask again or otherwise, or show `text` of this error"
        )
        self.text = text
        self.reason = reason
