
// ---- question by question: what each system retrieved, and what was answered with it

const perQuestion = document.getElementById("per-question");
if (perQuestion) {
  const views = JSON.parse(document.getElementById("per-question-data").textContent);
  const form = perQuestion.querySelector("form"), table = perQuestion.querySelector("table");
  const status = perQuestion.querySelector("[role=status]"), article = perQuestion.querySelector("article");

  const view = () => views[form.llm.value];
  const chosen = () => Number(form.k.value);
  const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

  function right(question, reply) {
    return reply ? mean(reply[0].map((answer) => Number(answer === question.answer))) : null;
  }

  function fraction(value) {
    return value === null ? "–" : Number.isInteger(value) ? String(value) : value.toFixed(2);
  }

  function number(value) {
    const cell = element("td", fraction(value), "number");
    if (value !== null) cell.dataset.order = value;
    return cell;
  }

  function row(question, at) {
    const {ks} = view(), button = element("button", question.text || question.id);
    button.type = "button";
    button.addEventListener("click", () => show(at, button));
    const head = element("th", [button]);
    head.scope = "row";
    const values = question.replies.map((replies) => right(question, replies[chosen()])).filter((one) => one !== null);
    const total = values.length ? values.reduce((sum, one) => sum + one, 0) : null;
    const bare = ks[0] === 0 && question.replies.length ? right(question, question.replies[0][0]) : null;
    const made = element("tr", [head, number(total), number(bare)]);
    made.dataset.question = at;
    return made;
  }

  function list() {
    const {questions, total, systems} = view(), words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = questions.map((question, at) => [question, at])
      .filter(([{text, id}]) => words.every((word) => text.toLowerCase().includes(word) || id === word));
    table.tBodies[0].replaceChildren(...found.map(([question, at]) => row(question, at)));
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    const left = questions.length === total ? "all of them are in this page"
      : `in this page are the ${count(questions.length)} on which systems differ most`;
    status.textContent = `${count(total)} questions, ${count(systems.length)} systems; ${left}; ${count(found.length)} listed.`;
    article.replaceChildren(element("p", "Choose a question to see what was retrieved and answered.", "below"));
  }

  function verdict(question, answer) {
    if (answer < 0) return element("span", "✗ invalid", "label irrelevant");
    return answer === question.answer ? element("span", `✓ ${answer}`, "label relevant")
      : element("span", `✗ ${answer}`, "label irrelevant");
  }

  function verdicts(question, reply) {
    return reply ? reply[0].flatMap((answer) => [verdict(question, answer), " "]) : ["–"];
  }

  function answers(question) {
    const {systems, ks} = view();
    const heads = ["system", ...ks.map((k) => `k = ${k}`)].map((name) => element("th", name));
    for (const head of heads) head.scope = "col";
    const rows = question.replies.map((replies, at) => {
      const head = element("th", systems[at]);
      head.scope = "row";
      return element("tr", [head, ...replies.map((reply) => element("td", verdicts(question, reply)))]);
    });
    const made = element("table", [element("caption", "Answers by option number"),
      element("thead", [element("tr", heads)]), element("tbody", rows)]);
    const scroll = element("div", [made], "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Answers");
    return scroll;
  }

  function option(question, text, at) {
    const parts = at === question.answer ? [element("strong", text), " ", element("span", "✓ correct", "label relevant")] : [text];
    return element("li", parts);
  }

  function passage(question, at) {
    const [id, document, text] = view().passages[at];
    const source = question.doc && document === question.doc
      ? [" ", element("span", "✓ from the question's document", "label relevant")] : [];
    return element("li", [element("p", text || "(its text is not in this page)"), element("p", [id, ...source], "below")]);
  }

  function contexts(question, replies, at) {
    const reply = replies[chosen()];
    const heading = element("h4", [`${view().systems[at]}: `, ...verdicts(question, reply)]);
    if (!reply) return element("section", [heading, element("p", "No answer.")]);
    const [, passages, cut] = reply;
    const none = element("p", view().ks[chosen()] ? "No passages." : "Asked without passages.");
    const parts = [heading, passages.length ? element("ol", passages.map((one) => passage(question, one))) : none];
    if (cut) parts.push(element("p", `The prompt was too long: ${count(cut)} passages were left out.`, "below"));
    return element("section", parts);
  }

  function show(at, button) {
    const question = view().questions[at];
    for (const other of table.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const heading = element("h3", question.text || question.id);
    heading.tabIndex = -1;
    const choices = element("ol", question.options.map((text, index) => option(question, text, index)));
    choices.start = 0;
    const about = `Question ${question.id}${question.doc ? `, from ${question.doc}` : ""}`;
    const both = element("div", question.replies.map((replies, index) => contexts(question, replies, index)), "both");
    article.replaceChildren(heading, element("p", about, "below"), choices, answers(question), both);
    heading.focus();
  }

  function start() {
    const {ks, k} = view();
    options(form.k, ks.map((one) => `k = ${one}`), ks.indexOf(k));
    list();
  }

  options(form.llm, views.map((one) => one.name), 0);
  form.llm.addEventListener("change", start);
  form.k.addEventListener("change", list);
  form.words.addEventListener("input", list);
  form.addEventListener("submit", (event) => event.preventDefault());
  start();
}
