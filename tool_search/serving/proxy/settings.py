"""The settings of a proxy, read from a YAML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tool_search.config.conversation import ToolSearchConfig, bound_embedder
from tool_search.config.limits import LimitSettings
from tool_search.config.loading import load_settings, settings_from_mapping
from tool_search.config.settings import Settings
from tool_search.core.settings import Dialect
from tool_search.core.values.json import shown
from tool_search.errors import ConfigurationError
from tool_search.serving.door import check_reach
from tool_search.serving.inspector.settings import InspectorSettings
from tool_search.serving.proxy.addresses import known_dialects

__all__ = [
    "ClientMatch",
    "ClientRule",
    "InspectorSettings",
    "ListenSettings",
    "ProxyConfig",
    "ProxyMode",
    "StateSettings",
    "UpstreamSettings",
    "checked_config",
    "load_proxy_config",
    "proxy_config",
]

ProxyMode = Literal["auto", "inject", "emulate", "off"]
"""The way in which a client gets tool search.

`inject` answers searches in the proxy, `emulate` answers for a provider that does not know a
client's deferred tools, `off` passes everything on; `auto` emulates for clients that defer
tools by themselves, and injects for all others.
"""


class ListenSettings(Settings):
    """The `listen` section: the address of the proxy.

    Attributes:
        host: The address; beyond this machine it needs tokens.
        port: The port.
        tokens_env: The environment variable with the tokens of clients, separated by commas;
            null: every client of this machine is served.
        max_body_bytes: The largest request that is read.
        body_timeout_s: Seconds that the body of a request may take.
        hosts: Globs of further names under which clients reach it, such as that of a reverse
            proxy. Empty: this machine's names; beyond this machine, where tokens guard it, any.
        cors: The origins of web pages that may ask, and read the replies; `*` for all.
        routes: Globs of paths that clients may ask for with a key of the proxy's own, besides
            the formats, models, embeddings, and what they have stored: `/v1/audio/*`, or with
            a method, `POST /v1/images/generations`.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8787
    tokens_env: str | None = None
    max_body_bytes: Annotated[int, Field(ge=1_000)] = 64_000_000
    body_timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 600.0
    hosts: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()


class UpstreamSettings(Settings):
    """One entry of `upstreams`: a provider's endpoint.

    Attributes:
        id: The name in logs and in the inspector.
        base_url: The address, with its version if it has one.
        dialects: The formats that it speaks; empty: those that are known of its host.
        models: Globs of models that it serves; with a key of the proxy's own, on every path.
        strategy: The strategy that presents tools to it, as in a bot's `providers`.
        api_key_env: The environment variable with its key; null: the client's own key goes on.
        timeout_s: Seconds of silence before the provider counts as failed.
    """

    id: str = "upstream"
    base_url: str
    dialects: tuple[Dialect, ...] = ()
    models: tuple[str, ...] = ("*",)
    strategy: str = "auto"
    api_key_env: str | None = None
    timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 600.0

    @property
    def spoken(self) -> tuple[Dialect, ...]:
        """The formats that it speaks."""
        return self.dialects or known_dialects(self.base_url)


class ClientMatch(Settings):
    """The `match` of a client's rule.

    Attributes:
        header: Globs by the name of a request's header; all have to match.
    """

    header: dict[str, str] = Field(default_factory=dict)


class ClientRule(Settings):
    """One entry of `clients`: the tools of a client that are always declared.

    Attributes:
        name: The name in logs and in the inspector.
        match: The requests that it is for; without a header, all.
        core: Globs of tools that are always declared; `namespace:*` chooses a namespace.
        deferred: Globs of the only tools that wait to be found; null: all but `core`.
        mode: The mode for this client; null: the proxy's.
    """

    name: str
    match: ClientMatch = ClientMatch()
    core: tuple[str, ...] = ()
    deferred: tuple[str, ...] | None = None
    mode: ProxyMode | None = None


class StateSettings(Settings):
    """The `state` section: exchanges that clients do not see, and owners of what is kept.

    Attributes:
        path: The SQLite file; null: memory of this process.
        keep_days: Days after its last use that an exchange is kept.
        max_exchanges: The number of exchanges; the least recently used are dropped.
    """

    path: str | None = None
    keep_days: Annotated[float, Field(gt=0, le=3_650, allow_inf_nan=False)] = 7.0
    max_exchanges: Annotated[int, Field(ge=1, le=100_000_000)] = 100_000


class ProxyConfig(Settings):
    """The settings of a proxy.

    Attributes:
        listen: The address.
        upstreams: The providers; the first that speaks the request's format and has its model.
        mode: The way in which clients get tool search.
        tool_search: The settings of searches, as in a bot's configuration.
        clients: Rules for clients; the first that fits, before the built-in ones.
        state: The hidden exchanges, and the owners of what providers keep.
        inspector: The page.
        max_searches: Searches of one turn; then the model is answered that there is no more.
        limits: The bounds of what providers send.
        shared_account: With a key of the proxy's own and with tokens, what a provider keeps
            belongs to the token that made it. True: what has no known owner, as it is older
            than `state`, is every client's; false: it is refused.
    """

    listen: ListenSettings = ListenSettings()
    upstreams: Annotated[tuple[UpstreamSettings, ...], Field(min_length=1)]
    mode: ProxyMode = "auto"
    tool_search: ToolSearchConfig = ToolSearchConfig()
    clients: tuple[ClientRule, ...] = ()
    state: StateSettings = StateSettings()
    inspector: InspectorSettings = InspectorSettings()
    max_searches: Annotated[int, Field(ge=1, le=100)] = 5
    limits: LimitSettings = LimitSettings()
    shared_account: bool = False

    _bound_embedder = model_validator(mode="after")(bound_embedder)


def load_proxy_config(path: str | os.PathLike[str]) -> ProxyConfig:
    """Return the settings in a YAML file.

    Raises:
        ConfigurationError: The file cannot be read, a key is unknown, or a value is not
            allowed.
    """
    return _check(load_settings(path, ProxyConfig))


def checked_config(
    given: ProxyConfig | Mapping[str, Any] | str | os.PathLike[str],
) -> ProxyConfig:
    """Return settings that are given as such, as a mapping, or as a file's path.

    Raises:
        ConfigurationError: The file cannot be read, a key is unknown, or a value is not
            allowed.
    """
    if isinstance(given, ProxyConfig):
        return _check(given)
    if isinstance(given, Mapping):
        return _check(settings_from_mapping(given, ProxyConfig))
    if isinstance(given, str | os.PathLike):
        return load_proxy_config(given)
    raise ConfigurationError(
        f"config must be a ProxyConfig, such as load_proxy_config('proxy.yaml'), not {shown(given)}"
    )


def proxy_config(base_url: str, dialects: tuple[Dialect, ...] = ()) -> ProxyConfig:
    """Return the settings for one provider.

    Args:
        base_url: Its address.
        dialects: The formats that it speaks; empty: those that are known of its host.

    Raises:
        ConfigurationError: The formats are not known.
    """
    upstream = UpstreamSettings(base_url=base_url, dialects=dialects)
    return _check(ProxyConfig(upstreams=(upstream,)))


def _check(config: ProxyConfig) -> ProxyConfig:
    for upstream in config.upstreams:
        if not upstream.spoken:
            raise ConfigurationError(
                f"upstream {upstream.id!r}: the formats of {upstream.base_url!r} are not known; "
                "set dialects to one or more of anthropic, openai_chat, openai_responses"
            )
    check_reach("listen", config.listen.host, config.listen.tokens_env)
    return config
