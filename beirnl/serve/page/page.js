"use strict";

const element = (id) => document.getElementById(id);
const state = { datasets: [], queries: [], total: 0, measure: "", systems: [], current: -1, asked: 0 };

/** A new element with attributes and children; text is only ever text. */
function made(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function say(text, problem) {
  element("status").textContent = text;
  element("status").classList.toggle("problem", Boolean(problem));
}

/** What the service answers; an error says what is wrong. */
async function get(path, parameters) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  const body = await answer.json().catch(() => ({ detail: `the service answers ${answer.status}` }));
  if (!answer.ok) throw new Error(body.detail);
  return body;
}

const dataset = () => state.datasets.find((one) => one.name === element("dataset").value);
const chosen = () => [...document.querySelectorAll("#systems input:checked")].map((box) => box.value);

// systems and queries ------------------------------------------------------------------------------------

function showSystems() {
  const boxes = element("systems");
  boxes.querySelectorAll("label").forEach((label) => label.remove());
  for (const system of dataset().systems.filter((one) => one.searchable)) {
    const box = made("input", { type: "checkbox", value: system.name, checked: "" });
    boxes.append(made("label", { title: system.kind }, box, ` ${system.name}`));
  }
}

async function loadQueries(more) {
  const parameters = { dataset: dataset().name, order: element("order").value, limit: 50 };
  if (!more) Object.assign(state, { queries: [], total: 0, current: -1 });
  const found = await get("queries", { ...parameters, offset: state.queries.length });
  if (parameters.dataset !== dataset().name || parameters.order !== element("order").value) return;
  state.queries.push(...found.queries);
  Object.assign(state, { total: found.total, measure: found.measure, systems: found.systems });
  showQueries();
}

function showQueries() {
  const head = made("tr", {}, made("th", { scope: "col" }, "query"),
    ...state.systems.map((name) => made("th", { scope: "col" }, name)));
  const rows = state.queries.map((query, place) => {
    const button = made("button", { type: "button", title: `query ${query.id}` }, query.text);
    button.addEventListener("click", () => step(place));
    const values = query.values.map((value) =>
      made("td", { class: "value" }, value === null ? "–" : value.toFixed(3)));
    return made("tr", {}, made("td", {}, button), ...values);
  });
  element("queries").replaceChildren(made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows)));
  element("measure").textContent = `${state.measure} by system; ${state.queries.length} of ${state.total}`;
  element("more").hidden = state.queries.length >= state.total;
  markCurrent();
}

function markCurrent() {
  document.querySelectorAll("#queries tbody tr").forEach((row, place) => {
    if (place === state.current) {
      row.setAttribute("aria-current", "true");
      row.scrollIntoView({ block: "nearest" });
    } else row.removeAttribute("aria-current");
  });
  element("previous").disabled = state.current <= 0;
  element("next").disabled = state.current + 1 >= state.total;
}

/** Ask a query of the list. */
async function step(place) {
  if (place < 0 || place >= state.total) return;
  if (place >= state.queries.length) await loadQueries(true);
  state.current = place;
  element("q").value = state.queries[place].text;
  markCurrent();
  await search({ id: state.queries[place].id });
}

// results ------------------------------------------------------------------------------------------------

/** Put a question, or a query of the dataset, to all chosen systems at once. */
async function search(question) {
  const number = ++state.asked;
  const parameters = { ...question, dataset: dataset().name, k: element("k").value };
  const systems = chosen();
  if (!systems.length) return say("Choose a system.", true);
  say("Searching …");
  const main = element("results");
  main.setAttribute("aria-busy", "true");
  const answers = await Promise.all(systems.map((system) =>
    get("search", { ...parameters, system }).catch((error) => ({ system, problem: error.message }))));
  if (number !== state.asked) return;
  const texts = await documents(answers).catch((error) => (say(error.message, true), new Map()));
  if (number !== state.asked) return;
  main.classList.toggle("translated", Boolean(dataset().translated_from));
  main.replaceChildren(...answers.map((answer) => column(answer, texts)));
  main.removeAttribute("aria-busy");
  summary(answers);
}

function summary(answers) {
  const problems = answers.filter((answer) => answer.problem);
  if (problems.length) return say(problems.map((one) => `${one.system}: ${one.problem}`).join(" · "), true);
  const asked = answers[0].query;
  const judged = asked.id === null ? "not one of the dataset's queries, so nothing is judged"
    : `query ${asked.id}, ${asked.relevant} relevant documents`;
  say(`${answers.length} system${answers.length > 1 ? "s" : ""}: ${judged}`);
}

/** The texts of all hits, each asked for once. */
async function documents(answers) {
  const ids = [...new Set(answers.flatMap((answer) => (answer.hits || []).map((hit) => hit.id)))];
  const found = new Map();
  for (let begin = 0; begin < ids.length; begin += 20) {
    const parameters = new URLSearchParams({ dataset: dataset().name });
    ids.slice(begin, begin + 20).forEach((id) => parameters.append("id", id));
    for (const one of (await get("documents", parameters)).documents) found.set(one.id, one);
  }
  return found;
}

function column(answer, texts) {
  const title = made("h2", {}, answer.system);
  if (answer.problem) return made("section", {}, title, made("p", {}, answer.problem));
  const relevant = answer.hits.filter((hit) => hit.relevance > 0).length;
  const facts = `${answer.hits.length} hits${answer.query.id === null ? "" : `, ${relevant} relevant`}, `
    + `${(answer.seconds * 1000).toFixed(1)} ms`;
  const hits = answer.hits.map((hit) => card(hit, texts.get(hit.id)));
  return made("section", { "aria-label": answer.system }, title, made("p", {}, facts), made("ol", {}, ...hits));
}

function card(hit, text) {
  const judged = hit.relevance === null ? null : hit.relevance > 0 ? "relevant" : "judged";
  const mark = judged && made("span", { class: "mark" },
    judged === "relevant" ? `✓ relevant (${hit.relevance})` : "✗ judged not relevant");
  const item = made("li", { class: judged }, made("p", { class: "facts" },
    made("span", {}, `${hit.rank}.`), made("span", {}, hit.id), made("span", {}, hit.score.toPrecision(5)), mark,
    text && text.status && text.status !== "ok" ? made("span", {}, `checks: ${text.status}`) : null));
  if (!text) return item;
  const shown = [passage(text, text.source && "translation"), text.source && passage(text.source, "source")];
  item.append(made("div", { class: text.source ? "texts both" : "texts" }, ...shown));
  const whole = made("button", { type: "button", "aria-expanded": "false" }, "Whole text");
  whole.addEventListener("click", () => {
    const open = item.classList.toggle("whole");
    whole.setAttribute("aria-expanded", String(open));
    whole.textContent = open ? "Less" : "Whole text";
  });
  item.append(whole);
  return item;
}

function passage(text, role) {
  return made("div", { lang: text.language, dir: "auto" },
    role ? made("p", { class: "language", lang: "en", dir: "ltr" }, `${role} (${text.language})`) : null,
    text.title ? made("h3", {}, text.title) : null, made("p", { class: "body" }, text.text));
}

// events -------------------------------------------------------------------------------------------------

const guarded = (action) => (...given) => Promise.resolve(action(...given)).catch((error) => say(error.message, true));

element("ask").addEventListener("submit", guarded((event) => {
  event.preventDefault();
  state.current = state.queries.findIndex((query) => query.text === element("q").value);
  markCurrent();
  return search(state.current < 0 ? { q: element("q").value } : { id: state.queries[state.current].id });
}));
element("dataset").addEventListener("change", guarded(() => {
  element("results").replaceChildren();
  showSystems();
  return loadQueries(false);
}));
element("order").addEventListener("change", guarded(() => loadQueries(false)));
element("more").addEventListener("click", guarded(() => loadQueries(true)));
element("next").addEventListener("click", guarded(() => step(state.current + 1)));
element("previous").addEventListener("click", guarded(() => step(state.current - 1)));
document.addEventListener("keydown", guarded((event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  if (event.key === "/") { event.preventDefault(); element("q").focus(); }
  if (event.key === "n") return step(state.current + 1);
  if (event.key === "p") return step(state.current - 1);
}));

async function begin() {
  const found = await get("systems", {});
  state.datasets = found.datasets;
  document.title = `${found.experiment}: ask every system`;
  element("dataset").replaceChildren(...found.datasets.map((one) => made("option", { value: one.name },
    one.translated_from ? `${one.name} (translated)` : one.name)));
  showSystems();
  await loadQueries(false);
}

guarded(begin)();
