/** The answer to "why?": the chain of facts of the explain API, in a dialog. */

import { ApiError, get, tenantPath } from "./api.js";
import { h, openDialog } from "./dom.js";
import { statusClass, visible } from "./format.js";

const MARKS = new Map([["True", "✓"], ["False", "✗"], ["Unknown", "?"]]);
const WORDS = new Map([["True", "Holds"], ["False", "Does not hold"], ["Unknown", "Not known"]]);
/** Of a hostname; the summary of every other answer says it in words that fit the question. */
const SERVED = new Map([["True", "Served"], ["False", "Not served"], ["Unknown", "Not known"]]);
const MOST_FACTS = 30;
const MOST_SUBJECTS = 30;

/**
 * @typedef {object} Question
 * @property {string} namespace of the Tenant
 * @property {string} name
 * @property {string} about as the API has it, such as host/shop.example.org
 * @property {string} field the field that it is about, empty for the whole chain
 * @property {string} title
 * @property {() => HTMLElement | null} [returnTo]
 */

/** @param {Question} question */
export async function openExplanation({ namespace, name, about, field, title, returnTo }) {
  const body = h("div", { class: "explanation", "aria-busy": "true" }, h("p", { class: "note" }, "Asking the server…"));
  const dialog = openDialog({ title, class: "sheet", returnTo }, body);
  try {
    const found = await get(tenantPath(namespace, name, "explain"), { about });
    if (dialog.open) body.replaceChildren(...answer(found, field));
  } catch (error) {
    body.replaceChildren(h("p", { class: "callout bad", role: "alert" }, error instanceof ApiError ? error.message : "The server cannot be reached."));
  }
  body.removeAttribute("aria-busy");
}

/**
 * The facts about a field, or all of them if none is.
 * @param {any[]} facts @param {string} field
 */
export function factsAbout(facts, field) {
  const resource = field.startsWith("quota ") ? field.slice(6) : "";
  const isAbout = (/** @type {any} */ fact) => {
    const path = fact.object?.field ?? "";
    if (resource) return [resource, `limits.${resource}`, `requests.${resource}`].some((each) => path.endsWith(`[${each}]`)) || path === "status.conditions[QuotaReady]";
    if (field === "spec.resourceQuotas") return path.startsWith(field);
    return path === field || (field === "status.host" && path === "spec.host");
  };
  return field ? facts.filter(isAbout) : [];
}

/** @param {any} found a TenantExplanation @param {string} field */
export function answer(found, field) {
  const about = factsAbout(found.facts, field);
  const chain = h("ol", { class: "chain" }, ...(about.length ? about : found.facts).slice(0, MOST_FACTS).map(factItem));
  const summary = about.length ? [] : [h("div", { class: `callout ${statusClass(found.verdict)}` }, ...verdictLines(found))];
  const more = about.length && about.length < found.facts.length ? h("button", { type: "button", onclick: () => {
    chain.replaceChildren(...found.facts.slice(0, MOST_FACTS).map(factItem));
    more.remove();
    chain.querySelector("li")?.focus();
  } }, `The whole chain (${found.facts.length} facts)`) : null;
  const rest = found.facts.length > MOST_FACTS ? h("p", { class: "note" }, `${MOST_FACTS} of ${found.facts.length} facts; kubectl tenant explain shows all.`) : null;
  return [...summary, chain, more, rest].filter((each) => each !== null);
}

/** @param {any} found */
function verdictLines({ about, verdict, summary }) {
  const text = visible(summary);
  return about?.startsWith("host/") ? [h("p", {}, h("strong", {}, SERVED.get(verdict) ?? verdict)), h("p", {}, text)] : [h("p", {}, h("strong", {}, text))];
}

/** A name is any text, so each has an element of its own. @param {{kind: string, name: string}[]} subjects */
function subjectList(subjects) {
  const rest = subjects.length - MOST_SUBJECTS;
  return h("ul", { class: "subjects" }, ...subjects.slice(0, MOST_SUBJECTS).map(({ kind, name }) => h("li", {}, `${kind} `, h("bdi", {}, h("code", {}, visible(name))))),
    rest > 0 ? h("li", { class: "note" }, `and ${rest} more; kubectl tenant who-can-see shows all.`) : null);
}

/** @param {any} fact */
function factItem({ object, status, value, subjects, rule, link, reason, message, remedy }) {
  const place = object.hidden ? "an object that you may not see" : `${object.kind} ${[object.namespace, object.name].filter(Boolean).join("/")}`;
  return h("li", { class: statusClass(status), tabIndex: -1 },
    h("span", { class: "mark", role: "img", "aria-label": WORDS.get(status) ?? status }, MARKS.get(status) ?? "?"),
    h("div", {},
      h("p", { class: "rule" }, visible(rule)),
      h("p", {}, h("code", {}, visible(object.field ?? place)), value !== undefined && !subjects && " ", value !== undefined && !subjects ? h("span", { class: "value" }, visible(value)) : null),
      subjects && subjectList(subjects),
      message && h("p", { class: "note" }, visible(reason ? `${reason}: ${message}` : message)),
      remedy && h("p", { class: "remedy" }, visible(remedy)),
      h("p", { class: "source" }, visible(`${place} · docs/${link}`))));
}
