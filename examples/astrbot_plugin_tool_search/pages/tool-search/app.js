// The page of the plugin. Texts of tools, users and models are shown as text, never as HTML.

const bridge = window.AstrBotPluginPage;
const PREFIX = "pages.tool-search.";
const MAX_ROWS = 500;
const TABS = ["overview", "tools", "search", "learned", "conversations"];
const FILTERS = ["all", "core", "deferred", "found", "never", "off"];

const chosen = { tab: "overview", filter: "all", word: "", query: "", place: "", id: "" };
let shown = 0;

const content = document.getElementById("content");
const problem = document.getElementById("problem");

function t(key, values = {}) {
  const text = bridge.t(PREFIX + key, key);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// The one place that makes elements: children that are strings become text nodes.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick" || key === "oninput" || key === "onchange" || key === "onsubmit") {
      element.addEventListener(key.slice(2), value);
    } else if (value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

// A name that a later release of the library adds is shown as it is.
const named = (prefix, name) => bridge.t(`${PREFIX}${prefix}_${name}`, name);
const number = (value) => new Intl.NumberFormat(bridge.getLocale()).format(value);
const share = (value) => number(Math.round(value * 100) / 100);
const time = (seconds) => new Date(seconds * 1000).toLocaleString(bridge.getLocale());
const names = (list) => (list.length ? list.join(", ") : t("none"));

function table(heads, rows) {
  const cell = (kind, one) => {
    // A button has a `value` too.
    if (typeof one === "string" || one instanceof Node) return make(kind, {}, one);
    return make(kind, { class: one.number ? "number" : one.wide ? "text" : undefined }, one.value);
  };
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, heads.map((head) => cell("th", head)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((one) => cell("td", one))))),
    ),
  );
}

const card = (label, value) => make("div", { class: "card" }, make("span", { class: "dim" }, label), make("b", {}, value));
const list = (lines, kind) => make("ul", {}, lines.map((line) => make("li", { class: kind }, line)));
const nothing = (key) => make("p", { class: "dim" }, t(key));

async function overview() {
  const facts = await bridge.apiGet("overview", { locale: bridge.getLocale() });
  const parts = [
    make("h2", {}, t("tools_now")),
    make(
      "div",
      { class: "cards" },
      card(t("mode"), named("mode", facts.mode)),
      card(t("total"), number(facts.total)),
      card(t("core"), number(facts.core)),
      card(t("deferred"), number(facts.deferred)),
      card(t("off"), number(facts.off)),
    ),
    make("p", { class: "dim" }, t("astrbot_tools")),
    make("h2", {}, t("saved")),
    make(
      "div",
      { class: "cards" },
      card(t("saved_total"), number(facts.saved)),
      card(t("saved_today"), number(facts.saved_today)),
      card(t("requests"), number(facts.requests)),
    ),
    make("p", { class: "dim" }, t("since", { time: time(facts.since) })),
    make("h2", {}, t("providers")),
    facts.providers.length
      ? table(
          [t("provider"), t("strategy")],
          facts.providers.map((one) => [make("code", {}, one.provider), named("strategy", one.strategy)]),
        )
      : nothing("no_providers"),
  ];
  const said = [...facts.problems, ...facts.unmatched.map((name) => t("unmatched", { name }))];
  if (said.length) parts.push(make("h2", {}, t("settings")), list(said, "warn"));
  parts.push(make("h2", {}, t("warnings")));
  parts.push(facts.warnings.length ? list([...facts.warnings].reverse(), "warn") : nothing("no_warnings"));
  return parts;
}

function matches(tool) {
  const found = tool.found > 0;
  const fits = {
    all: true,
    core: tool.kind === "core",
    deferred: tool.kind === "deferred",
    found,
    never: tool.kind === "deferred" && !found,
    off: tool.kind === "off",
  };
  const word = chosen.word.trim().toLowerCase();
  const text = `${tool.name} ${tool.server} ${tool.description}`.toLowerCase();
  return fits[chosen.filter] && text.includes(word);
}

function state(tool) {
  const kind = tool.kind === "deferred" && tool.found > 0 ? "found" : tool.kind;
  return make("span", { class: `tag ${kind}` }, t(kind === "deferred" ? "never" : kind));
}

async function tools() {
  const facts = await bridge.apiGet("tools");
  const body = make("div");
  const rows = () => {
    const fitting = facts.tools.filter(matches);
    body.replaceChildren(
      make("p", { class: "dim" }, t("shown_tools", { count: number(fitting.length), total: number(facts.tools.length) })),
      table(
        [t("tool"), t("server"), t("state"), { value: t("found_times"), number: true }, { value: t("called_times"), number: true }, { value: t("tokens"), number: true }, t("description_head")],
        fitting.slice(0, MAX_ROWS).map((tool) => [
          make("code", {}, tool.name),
          make("span", { class: "name" }, tool.server),
          state(tool),
          { value: number(tool.found), number: true },
          { value: number(tool.called), number: true },
          { value: number(tool.tokens), number: true },
          { value: tool.description, wide: true },
        ]),
      ),
    );
    if (fitting.length > MAX_ROWS) body.append(make("p", { class: "dim" }, t("more", { count: number(fitting.length - MAX_ROWS) })));
  };
  const filter = make(
    "select",
    { id: "filter", "aria-label": t("state"), onchange: (event) => { chosen.filter = event.target.value; rows(); } },
    FILTERS.map((name) => make("option", { value: name, selected: name === chosen.filter }, t(`filter_${name}`))),
  );
  const word = make("input", {
    id: "word", type: "search", placeholder: t("filter_word"), value: chosen.word,
    oninput: (event) => { chosen.word = event.target.value; rows(); },
  });
  rows();
  return [
    make("div", { class: "row" }, filter, word),
    body,
    make("h2", {}, t("in_vain")),
    facts.in_vain.length
      ? table([t("time"), t("query")], facts.in_vain.map((one) => [time(one.at), { value: one.text, wide: true }]))
      : nothing("no_in_vain"),
  ];
}

function reasons(found) {
  if (!found) return nothing("no_reasons");
  if (found.named) return make("p", {}, t("named"));
  const lines = found.words.map((one) => {
    const fields = Object.entries(one.fields).map(([field, value]) => `${named("field", field)} ${share(value)}`);
    const instead = one.instead.length ? ` (${t("instead", { words: one.instead.join(", ") })})` : "";
    return `${one.word}${instead}: ${share(one.share)} = ${fields.join(" + ")}`;
  });
  if (found.learned) lines.push(t("by_learning", { value: share(found.learned) }));
  if (found.operators) lines.push(t("by_operators", { value: share(found.operators) }));
  return make(
    "details",
    {},
    make("summary", {}, t("why", { sum: share(found.sum), boost: share(found.boost) })),
    list(lines),
  );
}

async function search() {
  const results = make("div", { id: "results" });
  const ask = async () => {
    if (!chosen.query.trim()) return results.replaceChildren();
    const facts = await bridge.apiGet("search", { query: chosen.query });
    const hits = facts.hits.map((hit, place) =>
      make(
        "div",
        { class: place < facts.returned ? "hit" : "hit beyond" },
        make("header", {}, make("b", {}, `${place + 1}.`), make("code", {}, hit.name), make("span", { class: "dim" }, hit.server), make("span", {}, share(hit.score))),
        make("div", { class: "bar", style: `width: ${Math.max(1, Math.round(hit.score * 100))}%` }),
        make("p", {}, hit.description),
        reasons(hit.reasons),
      ),
    );
    const head = facts.found
      ? t("found_head", { found: number(facts.found), total: number(facts.total), returned: number(Math.min(facts.returned, facts.hits.length)) })
      : t("found_nothing", { total: number(facts.total) });
    const unknown = facts.unmatched.length ? [make("p", { class: "warn" }, t("unknown_words", { words: facts.unmatched.join(", ") }))] : [];
    results.replaceChildren(make("p", {}, head), ...unknown, ...hits);
  };
  const field = make("input", { id: "query", type: "search", placeholder: t("query_hint"), value: chosen.query, maxlength: 1000 });
  const form = make(
    "form",
    { class: "row", onsubmit: (event) => { event.preventDefault(); chosen.query = field.value; guarded(ask); } },
    field,
    make("button", { class: "main", type: "submit" }, t("try")),
  );
  await ask();
  return [make("p", { class: "dim" }, t("try_hint")), form, results];
}

async function learned() {
  const facts = await bridge.apiGet("learned");
  const erase = (name) => async () => {
    const gone = await bridge.apiPost("forget", { tool: name });
    await show();
    content.prepend(make("p", { role: "status" }, t("erased", { name: gone.tool, count: number(gone.erased) })));
  };
  const parts = [make("p", { class: "dim" }, t(facts.enabled ? "learned_hint" : "learning_off"))];
  if (!facts.tools.length) return [...parts, nothing("no_learned")];
  parts.push(
    table(
      [t("tool"), t("words"), ""],
      facts.tools.map((one) => [
        make("code", {}, one.name),
        { value: one.words.join(", "), wide: true },
        make("button", { type: "button", "data-tool": one.name, onclick: () => guarded(erase(one.name)) }, t("erase")),
      ]),
    ),
  );
  return parts;
}

function moment(one) {
  const text = {
    request: () => t("did_request", { provider: one.text, count: number(one.count), tokens: number(one.tokens), full: number(one.full) }),
    search: () => t("did_search", { query: one.text, names: names(one.names) }),
    call: () => t("did_call", { name: one.text }),
  }[one.kind]();
  return make("li", { class: one.kind }, make("span", { class: "dim" }, time(one.at)), " ", text);
}

async function conversations() {
  const { conversations: known } = await bridge.apiGet("conversations");
  if (!known.length) return [nothing("no_conversations")];
  if (!known.some((one) => one.place === chosen.place && one.id === chosen.id)) {
    [chosen.place, chosen.id] = [known[0].place, known[0].id];
  }
  const facts = await bridge.apiGet("conversation", { place: chosen.place, id: chosen.id });
  const choose = make(
    "select",
    {
      id: "conversation",
      "aria-label": t("conversation"),
      onchange: (event) => {
        const one = known[Number(event.target.value)];
        [chosen.place, chosen.id] = [one.place, one.id];
        guarded(show);
      },
    },
    known.map((one, place) =>
      make("option", { value: place, selected: one.place === chosen.place && one.id === chosen.id }, `${one.place} · ${time(one.at)}`),
    ),
  );
  const parts = [make("div", { class: "row" }, choose)];
  const now = facts.state;
  if (now) {
    parts.push(
      table(
        [t("fact"), t("value")],
        [
          [t("mode"), `${named("mode", now.mode)} (${named("reason", now.reason)})`],
          [t("strategy"), now.strategy ? named("strategy", now.strategy) : t("none")],
          [t("tokens"), t("of_tokens", { tokens: number(now.tokens), full: number(now.full) })],
          [t("core"), { value: names(now.core), wide: true }],
          [t("found"), { value: names(now.found), wide: true }],
          [t("declared"), { value: names(now.declared), wide: true }],
        ],
      ),
    );
  }
  parts.push(make("h2", {}, t("timeline")));
  parts.push(facts.moments.length ? make("ol", { class: "timeline" }, facts.moments.map(moment)) : nothing("none"));
  return parts;
}

const VIEWS = { overview, tools, search, learned, conversations };

async function show() {
  const mine = (shown += 1);
  const { tab } = chosen;
  drawHead();
  if (content.dataset.shown !== tab) content.replaceChildren(make("p", { class: "dim" }, t("loading")));
  const parts = await VIEWS[tab]();
  if (mine !== shown) return;
  content.replaceChildren(...parts);
  content.dataset.shown = tab;
}

// A failure of the plugin is shown where it was asked.
async function guarded(action) {
  problem.hidden = true;
  try {
    await action();
  } catch (error) {
    problem.textContent = t("failed", { cause: error.message });
    problem.hidden = false;
  }
}

function drawHead() {
  document.documentElement.lang = bridge.getLocale();
  document.title = t("title");
  const refresh = document.getElementById("refresh");
  refresh.textContent = t("refresh");
  document.getElementById("tabs").replaceChildren(
    ...TABS.map((name) =>
      make(
        "button",
        {
          type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === chosen.tab),
          onclick: () => { chosen.tab = name; guarded(show); },
        },
        t(`tab_${name}`),
      ),
    ),
  );
}

await bridge.ready();
document.getElementById("refresh").addEventListener("click", () => guarded(show));
let locale = bridge.getLocale();
bridge.onContext(() => {
  if (bridge.getLocale() !== locale) {
    locale = bridge.getLocale();
    guarded(show);
  }
});
await guarded(show);
