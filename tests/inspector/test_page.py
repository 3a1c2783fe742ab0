"""The page in a real Chromium, on a proxy before the stand-in provider.

`make test-proxy` installs Debian's `chromium`. Without it the tests are skipped, and say so.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.inspector.test_recorder import record
from tests.proxy.clients import CHAT, QUESTIONS, ChatClient, MessagesClient, ask_all
from tests.proxy.conftest import serve, upstreams
from tool_search.i18n import LANGUAGES, text
from tool_search.serving.door import TOKEN_HEADER, Access
from tool_search.serving.inspector.records import (
    CallRecord,
    ClientSide,
    DeclaredTool,
    HitRecord,
    PrefixRecord,
    QueryRecord,
    RequestRecord,
    RequestRow,
    SearchRecord,
    StepRecord,
)
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import InspectorSettings, ListenSettings, ProxyConfig
from tool_search.testing import (
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInModel,
    StandInServer,
)

pytestmark = pytest.mark.clients
browsers = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
HOSTILE = (
    '</script><img src="http://127.0.0.1:9/x" onerror="window.hacked = true">'
    "<script>window.hacked = true</script>\u202e words {count} $& counted"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium with a profile of its own."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with browsers.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=list(FLAGS)
        )
        yield running
        running.close()


class Changing:
    """A model that a test may change."""

    def __init__(self) -> None:
        self.plays: StandInModel = KeywordModel(search_tool="tool_search")

    def reply(self, view: ModelView) -> ModelReply:
        """Return the reply of the model."""
        return self.plays.reply(view)


@pytest.fixture
def model() -> Changing:
    """The provider's model."""
    return Changing()


@pytest.fixture
def server(model: Changing) -> Iterator[StandInServer]:
    """A stand-in provider."""
    with StandInServer(model=model) as running:
        yield running


Started = Callable[..., tuple[str, ToolSearchProxy]]


@pytest.fixture
def start(server: StandInServer) -> Iterator[Started]:
    """A function that starts a proxy with settings, and returns its address and it."""
    running = []

    def begin(**settings: Any) -> tuple[str, ToolSearchProxy]:
        proxy = ToolSearchProxy(ProxyConfig(upstreams=upstreams(server), **settings))
        opened = serve(proxy)
        running.append(opened)
        return opened.__enter__(), proxy

    yield begin
    for opened in running:
        opened.__exit__(None, None, None)


@pytest.fixture
def page(browser: Any, start: Started) -> Iterator[Any]:  # closed before the proxy ends
    """A page; no test leaves an error in its console, or a request to elsewhere."""
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    problems: list[str] = []
    addresses: list[str] = []
    opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: addresses.append(request.url))
    opened.problems = problems
    yield opened
    origin = opened.evaluate("location.origin")
    context.close()
    assert problems == []
    assert [url for url in addresses if not url.startswith((origin, "data:"))] == []


def open_page(page: Any, address: str) -> Any:
    """Open the page, and wait until it follows."""
    page.goto(f"{address}/inspector")
    page.locator('#link[data-state="live"]').wait_for()
    return page.locator("#rows tr")


def test_rows_come_while_a_conversation_runs(page: Any, start: Started) -> None:
    address, _ = start()
    rows = open_page(page, address)
    assert rows.count() == 0
    assert page.locator("#none").is_visible()
    client = MessagesClient(address, stream=True)
    for number, question in enumerate(QUESTIONS, start=1):
        client.ask(question)
        rows.nth(2 * number - 1).wait_for()
    page.locator("#rows tr:not(.soft)").nth(5).wait_for()  # none is under way

    newest = rows.first.locator("td").all_inner_texts()
    assert newest[1] == "generic"
    assert newest[3] == "claude-sonnet-4-6"
    assert newest[-1] == "200"
    assert page.locator("#count").inner_text() == "6 of 6 requests"


def test_a_request_under_way_has_a_row_that_its_end_replaces(page: Any, start: Started) -> None:
    address, proxy = start()
    rows = open_page(page, address)
    assert proxy.inspection is not None
    recorder = proxy.inspection.recorder
    for name in ("r1", "r2"):
        recorder.begin(RequestRow(id=name, at=1.0, model="slow", running=True))
    row = page.locator('tr[data-id="r1"]')
    row.wait_for()
    page.locator('tr[data-id="r2"]').wait_for()

    assert row.locator("td").last.inner_text() == "running"
    assert row.locator("a").count() == 0
    page.select_option("#show", "running")
    assert page.locator("#rows tr:visible").count() == 2
    recorder.add(record(1).model_copy(update={"status": 200}))
    recorder.forget("r2")
    page.locator("#rows tr:visible").first.wait_for(state="hidden")
    page.select_option("#show", "all")
    page.locator('tr[data-id="r2"]').wait_for(state="detached")
    row.locator("td", has_text=re.compile("^200$")).wait_for()
    assert rows.count() == 1


def test_one_request_shows_why_and_what_both_sides_saw(page: Any, start: Started) -> None:
    address, _ = start(inspector=InspectorSettings(bodies=True))
    ask_all(ChatClient(address, stream=False), QUESTIONS[:1])
    rows = open_page(page, address)
    rows.last.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#detail h2").wait_for()

    assert page.evaluate("document.activeElement.tagName") == "H2"
    whole = page.locator("#detail").inner_text()
    assert "found by “Count the words" in whole
    assert "a tool was added count_words" in whole.replace("\n", " ")
    assert "tool_search (hidden from the client)" in whole
    assert "The first of its conversation" in whole
    page.locator("#detail details").first.locator("summary").click()
    assert "name 0." in page.locator("#detail details").first.inner_text()
    bodies = page.locator("#detail pre")
    assert any('"tool_search"' in each for each in bodies.all_text_contents())

    page.keyboard.press("Escape")
    rows.first.wait_for()
    assert page.evaluate("location.hash") == "#/"


def test_every_language_and_theme(page: Any, start: Started) -> None:
    address, _ = start()
    ask_all(ChatClient(address, stream=False), QUESTIONS[:1])
    rows = open_page(page, address)
    rows.last.wait_for()
    page.emulate_media(color_scheme="light")
    backs = set()
    for language in LANGUAGES:
        page.select_option("#language", language)
        assert page.title() == text("inspector.title", language)
        heads = page.locator("#heads th").all_inner_texts()
        assert heads[0] == text("inspector.time", language)
        rows.last.locator("a").click()
        page.locator("#detail h3").first.wait_for()
        shown = page.locator("#detail h3").all_inner_texts()
        assert shown[0] == text("inspector.declared_tools", language)
        page.click("#to-figures")
        page.locator("#sums h3").first.wait_for()
        assert text("inspector.never_found", language) in page.locator("#sums").inner_text()
        page.click("#to-list")
    for theme in ("auto", "dark", "light"):
        page.select_option("#theme", theme)
        backs.add((theme, page.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert len(backs) == 3
    colours = dict(backs)
    assert colours["auto"] == colours["light"] != colours["dark"]

    page.select_option("#theme", "dark")
    page.reload()
    page.locator("#rows tr").first.wait_for()
    assert page.title() == text("inspector.title", LANGUAGES[-1])
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == colours["dark"]


def test_text_of_third_parties_is_shown_as_text(page: Any, model: Changing, start: Started) -> None:
    address, proxy = start(inspector=InspectorSettings(bodies=True))
    client = ChatClient(address, stream=False)
    hostile = {
        "type": "function",
        "function": {
            "name": "count_hostile",
            "description": HOSTILE,
            "parameters": {"type": "object", "properties": {}},
        },
    }
    client.tools = [hostile, *CHAT]
    query = ModelCall(name="tool_search", arguments={"query": f"hostile counted {HOSTILE}"})
    model.plays = ScriptedModel([ModelReply(calls=(query,)), ModelReply(text=HOSTILE)])
    assert "onerror" in client.ask(HOSTILE)
    rows = open_page(page, address)
    rows.first.locator("a").click()
    page.locator("#detail h2").wait_for()

    shown = page.locator("#detail").text_content()
    assert shown.count("</script><img src=") > 3
    assert "{count} $& counted" in shown
    assert page.locator("img, #detail script").count() == 0
    assert page.evaluate("window.hacked === undefined")
    assert proxy.inspection is not None
    proxy.inspection.recorder.add(hostile_record())
    page.click("#to-list")
    rows.nth(1).wait_for()
    assert rows.first.text_content().count("</script><img src=") == 3
    rows.first.locator("a").click()
    page.locator("#detail h2").wait_for()
    assert page.locator("#detail").text_content().count("</script><img src=") > 12
    page.click("#to-figures")
    page.locator("#sums h2").wait_for()
    assert page.locator("#sums").text_content().count("</script><img src=") == 1
    assert page.locator("img, main script").count() == 0
    assert page.evaluate("window.hacked === undefined")


def hostile_record() -> RequestRecord:
    """Return a record whose every text is hostile."""
    reasons = {"fields": {"name": [HOSTILE]}}
    hit = HitRecord(name=HOSTILE, description=HOSTILE, server=HOSTILE, reasons=reasons)
    query = QueryRecord(query=HOSTILE, hits=(hit,), unmatched=(HOSTILE,))
    prefix = PrefixRecord(
        before="b", kept_bytes=1, total_bytes=2, cause="tool_added", path=HOSTILE,
        subject=HOSTILE, old=HOSTILE, new=HOSTILE,
    )  # fmt: skip
    call = CallRecord(name=HOSTILE, seen="other")
    step = StepRecord(calls=(call,), prefix=prefix, request=HOSTILE, reply=HOSTILE)
    return RequestRecord(
        id="hostile",
        at=1_000.0,
        client=HOSTILE,
        conversation=HOSTILE,
        model=HOSTILE,
        upstream=HOSTILE,
        status=200,
        declared_tools=(DeclaredTool(name=HOSTILE, why="found", by=HOSTILE),),
        searched=(SearchRecord(queries=(query,), error=HOSTILE),),
        steps=(step,),
        client_side=ClientSide(calls=(HOSTILE,), request=HOSTILE, reply=HOSTILE),
    )


def test_a_thousand_rows_filters_and_a_pause(page: Any, start: Started) -> None:
    address, proxy = start(inspector=InspectorSettings(keep_requests=2_000))
    rows = open_page(page, address)
    assert proxy.inspection is not None
    recorder = proxy.inspection.recorder
    for number in range(1_200):
        model = "rare" if number == 1_150 else "usual"
        recorder.add(record(number).model_copy(update={"model": model, "status": 200}))
    page.locator('tr[data-id="r1199"]').wait_for()

    assert rows.count() == 1_000
    assert page.locator('tr[data-id="r199"]').count() == 0
    page.fill("#filter", "RARE 200")
    assert page.locator("#rows tr:visible").count() == 1
    assert page.locator("#count").inner_text() == "1 of 1,000 requests"
    page.fill("#filter", "")
    page.select_option("#show", "failed")
    assert page.locator("#rows tr:visible").count() == 0
    page.select_option("#show", "all")

    page.click("#pause")
    recorder.add(record(2_000))
    page.get_by_role("button", name="Resume, 1 new").wait_for()
    assert page.locator('tr[data-id="r2000"]').count() == 0
    page.click("#pause")
    page.locator('tr[data-id="r2000"]').wait_for()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_narrow_screen_needs_no_scrolling_sideways(
    page: Any, start: Started, language: str
) -> None:
    address, _ = start(inspector=InspectorSettings(bodies=True))
    ask_all(ChatClient(address, stream=False), QUESTIONS[:1])
    page.set_viewport_size({"width": 360, "height": 740})
    rows = open_page(page, address)
    page.select_option("#language", language)
    rows.last.locator("a").click()
    page.locator("#detail h2").wait_for()
    widths = [page.evaluate("document.documentElement.scrollWidth")]
    for place in ("#to-figures", "#to-list"):
        page.click(place)
        page.locator("#sums h2" if place == "#to-figures" else "#rows tr").first.wait_for()
        widths.append(page.evaluate("document.documentElement.scrollWidth"))

    assert widths == [360, 360, 360]


def test_a_screen_reader_finds_every_part(page: Any, start: Started) -> None:
    address, _ = start()
    ask_all(ChatClient(address, stream=False), QUESTIONS[:1])
    page.set_viewport_size({"width": 360, "height": 740})  # a grid, and still a table
    open_page(page, address).last.wait_for()

    table = page.get_by_role("table", name="Requests")
    assert table.get_by_role("row").count() == 3
    assert table.get_by_role("columnheader").count() == 16
    assert table.get_by_role("cell").count() == 32
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("navigation").get_by_role("link").count() == 2
    for name in ("Language", "Theme", "Filter", "Show"):
        assert page.get_by_label(name, exact=True).count() == 1
    assert page.get_by_role("button", name="Pause").get_attribute("aria-pressed") == "false"
    page.locator("#announce").get_by_text("2 new requests").wait_for(state="attached")


def test_beyond_its_machine_the_page_asks_for_the_token(
    page: Any, start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENS", "t1")
    address, proxy = start(listen=ListenSettings(host="0.0.0.0", tokens_env="TOKENS"))  # noqa: S104
    assert proxy.inspection is not None
    own, other = (Access(tokens=[t]).client({TOKEN_HEADER: t.decode()}) for t in (b"t1", b"t2"))
    assert own is not None
    assert other is not None
    proxy.inspection.recorder.add(record(1), owner=own)
    proxy.inspection.recorder.add(record(2), owner=other)
    page.goto(f"{address}/inspector")
    page.get_by_label("Token").fill("t1")
    assert page.locator("#rows tr").count() == 0
    page.get_by_role("button", name="Open").click()
    page.locator("#rows tr").first.wait_for()

    page.reload()
    page.locator("#rows tr").first.wait_for()
    assert page.locator("#rows tr").count() == 1  # the other client's request is not shown
    # Chromium writes a refused request into the console by itself.
    assert all("401" in problem for problem in page.problems)
    page.problems.clear()
