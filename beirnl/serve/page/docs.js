"use strict";

const made = (tag, ...children) => {
  const node = document.createElement(tag);
  node.append(...children);
  return node;
};

/** The limits of a parameter, in words. */
function limits(schema) {
  const one = (schema.anyOf || [schema]).find((choice) => choice.type !== "null");
  const words = { minLength: "at least", maxLength: "at most", minimum: "from", maximum: "to", minItems: "at least", maxItems: "at most" };
  const facts = Object.entries(words).filter(([name]) => name in one).map(([name, word]) => `${word} ${one[name]}`);
  if (one.enum) facts.push(one.enum.join(" or "));
  if ("default" in schema) facts.push(`default ${schema.default}`);
  return [one.type, ...facts].join(", ");
}

function route(path, { get }) {
  const parameters = (get.parameters || []).flatMap((one) => [
    made("dt", `${one.name}${one.required ? " (required)" : ""}`),
    made("dd", [one.description, limits(one.schema)].filter(Boolean).join(" — ")),
  ]);
  const answers = Object.entries(get.responses).map(([status, one]) => {
    const schema = Object.values(one.content || {})[0]?.schema?.$ref?.split("/").pop();
    return `${status} ${schema || ""}`.trim();
  });
  return made("section", made("h2", `GET ${path}`), made("p", get.description || get.summary),
    made("dl", ...parameters), made("p", `Answers: ${answers.join(", ")}`));
}

fetch("openapi.json").then((answer) => answer.json()).then((found) => {
  const routes = Object.entries(found.paths).map(([path, methods]) => route(path, methods));
  const schemes = made("section", made("h2", "What answers hold"),
    ...Object.entries(found.components.schemas).flatMap(([name, schema]) =>
      [made("h3", name), made("p", schema.description || ""), made("p", Object.keys(schema.properties || {}).join(", "))]));
  document.getElementById("routes").replaceChildren(...routes, schemes);
});
