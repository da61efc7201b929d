"use strict";

// ---- tables: pressing a head sorts by its column, numbers from high to low first, texts from a to z first

function sorted(body, at, descending) {
  const key = (row) => row.cells[at].dataset.order;
  const numbers = [...body.rows].some((row) => key(row) !== undefined);
  const missing = descending ? -Infinity : Infinity;
  const value = (row) => Number(key(row) ?? missing);
  const text = (row) => row.cells[at].textContent.trim();
  return [...body.rows].sort((a, b) => (numbers ? (value(a) > value(b)) - (value(a) < value(b))
    : text(a).localeCompare(text(b), undefined, {numeric: true})) * (descending ? -1 : 1));
}

function mark(head, direction) {
  for (const other of head.closest("table").querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
}

for (const button of document.querySelectorAll("thead th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), body = head.closest("table").tBodies[0], at = Number(head.dataset.column);
  const now = head.getAttribute("aria-sort");
  const numbers = [...body.rows].some((row) => row.cells[at].dataset.order !== undefined);
  const descending = now ? now === "ascending" : numbers;
  body.append(...sorted(body, at, descending));
  mark(head, descending ? "descending" : "ascending");
});

// ---- what the views share

const count = (number) => number.toLocaleString("en");
const counted = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function element(name, content = "", kind = "") {
  const made = document.createElement(name);
  made.append(...(Array.isArray(content) ? content : [content]));
  if (kind) made.className = kind;
  return made;
}

function options(select, names, chosen) {
  select.replaceChildren(...names.map((name, at) => {
    const option = element("option", name);
    option.value = at;
    return option;
  }));
  select.value = Math.min(chosen, names.length - 1);
}

// ---- query by query: two systems, the queries between them, and what they found

const section = document.getElementById("per-query");
if (section) {
  const places = JSON.parse(document.getElementById("per-query-data").textContent);
  const form = section.querySelector("form"), table = section.querySelector("table");
  const status = section.querySelector("[role=status]"), article = section.querySelector("article");

  function choice() {
    const place = places[form.place.value];
    const [measure, a, b] = ["measure", "a", "b"].map((name) => Number(form[name].value));
    return {place, measure, a, b};
  }

  function number(value, sign = false) {
    const cell = element("td", (sign && value > 0 ? "+" : "") + value.toFixed(4), "number");
    cell.dataset.order = value;
    return cell;
  }

  function below(place) {
    return place.queries.length === place.total ? "all of them"
      : `the ${count(place.queries.length)} on which the systems of the report differ most`;
  }

  function list() {
    const {place, measure, a, b} = choice();
    const [wins, losses, ties] = place.pairs[measure][a * place.systems.length + b];
    const heads = table.querySelectorAll("thead button");
    heads[1].textContent = `A: ${place.systems[a]}`;
    heads[2].textContent = `B: ${place.systems[b]}`;
    table.tBodies[0].replaceChildren(...place.queries.map((query, at) => {
      const button = element("button", query.text || query.id), head = element("th", [button]);
      button.type = "button";
      button.addEventListener("click", () => show(at, button));
      head.scope = "row";
      const [valueA, valueB] = [query.values[measure][a], query.values[measure][b]];
      const row = element("tr", [head, number(valueA), number(valueB), number(valueA - valueB, true)]);
      row.dataset.query = at;
      return row;
    }));
    table.tBodies[0].append(...sorted(table.tBodies[0], 3, true));
    mark(table.querySelector("th[data-column='3']"), "descending");
    status.textContent = `Of ${counted(place.total, "query", "queries")}, A is better on ${count(wins)}, `
      + `B on ${count(losses)}, and they are equal on ${count(ties)} (${place.measures[measure]}). Below: ${below(place)}.`;
    article.replaceChildren(element("p", "Choose a query to see what both systems found.", "below"));
  }

  function label(query, document) {
    const grade = query.labels[document];
    if (grade === undefined) return element("span", "not judged", "label");
    return grade > 0 ? element("span", `✓ relevant (${grade})`, "label relevant")
      : element("span", `✗ judged not relevant (${grade})`, "label irrelevant");
  }

  function item(place, query, at) {
    const [id, title, text] = place.documents[at];
    const head = element("p", [element("strong", title || id), " ", label(query, at)]);
    return element("li", [head, element("p", text), element("p", id, "below")]);
  }

  function hits(place, query, system, letter, measure) {
    const found = query.hits[system].map((at) => item(place, query, at));
    const value = `${place.measures[measure]} ${query.values[measure][system].toFixed(4)}`;
    const heading = element("h4", `${letter}: ${place.systems[system]}, ${value}`);
    const none = element("p", "No hits.");
    return element("section", [heading, found.length ? element("ol", found) : none]);
  }

  function missed(place, query, a, b) {
    const lost = query.relevant.filter(([, ...ranks]) => !ranks[a] && !ranks[b]);
    const parts = [element("h4", "Relevant documents that neither found"),
      element("p", `Not among the first ${count(place.depths[a])} of A or the first ${count(place.depths[b])} of B.`,
        "below"),
      lost.length ? element("ul", lost.map(([at]) => item(place, query, at))) : element("p", "None.")];
    const more = counted(query.more, "further relevant document is", "further relevant documents are");
    if (query.more) parts.push(element("p", `${more} not in this page.`));
    return element("section", parts, "wide");
  }

  function show(at, button) {
    const {place, measure, a, b} = choice(), query = place.queries[at];
    for (const other of table.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const heading = element("h3", query.text || query.id);
    heading.tabIndex = -1;
    const both = element("div", [hits(place, query, a, "A", measure), hits(place, query, b, "B", measure),
      missed(place, query, a, b)], "both");
    article.replaceChildren(heading, element("p", `Query ${query.id}`, "below"), both);
    heading.focus();
  }

  function place() {
    const {measures, systems} = places[form.place.value];
    options(form.measure, measures, Math.max(0, measures.indexOf("nDCG@10")));
    options(form.a, systems, 0);
    options(form.b, systems, 1);
    list();
  }

  options(form.place, places.map((one) => one.name), 0);
  form.place.addEventListener("change", place);
  for (const name of ["measure", "a", "b"]) form[name].addEventListener("change", list);
  form.addEventListener("submit", (event) => event.preventDefault());
  place();
}
