"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
import ssl
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.clock import LoopClock

_RANDOM = "test_random.py"
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"

# As hypothesis itself does: what gates a change is the same for each try, what a developer
# runs looks somewhere else each time.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ,
)
settings.register_profile("long", settings.get_profile("default"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell starts what it runs in the background with Ctrl-C ignored, and the commands under
# test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares the garbage collector thousands of tests and types, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Python's 700 objects between two collections cost a sixteenth of the suite's time.
        gc.set_threshold(30_000, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, so that no worker is left with one at the end."""
    items.sort(key=lambda item: "stateful" not in item.path.parts and item.path.name != _RANDOM)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(
    report: pytest.TestReport | pytest.CollectReport,
) -> Generator[None, Any, Any]:
    """A test's output may hold half a sign, which would end the worker that reports it."""
    written = yield
    return _encodable(written) if report.failed or report.sections else written


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return type(value)(map(_encodable, value))
    if isinstance(value, dict):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    return value


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recordings and public data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the recordings and data sets in {SHARED.name}/ beside the checkout")
    return SHARED


@pytest.fixture
async def clock() -> AsyncIterator[LoopClock]:
    """The clock of the test's event loop."""
    with pytest.MonkeyPatch.context() as patch:
        yield LoopClock(patch)


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each HTTP client reads every trusted certificate, in 30 ms; loopback needs none of them."""
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    with pytest.MonkeyPatch.context() as patch:
        if known:
            path = tmp_path_factory.mktemp("certificates") / "one.pem"
            path.write_text(ssl.DER_cert_to_PEM_cert(known[0]), encoding="ascii")
            patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def _data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes into the data folder of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield
