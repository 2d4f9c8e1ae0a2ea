import { get, tenantPath } from "./api.js";
import { chip, h, replace } from "./dom.js";

const WORDS = { True: "Yes", False: "No", Unknown: "Not known" };

/**
 * Asks the API why something is as it is, and shows the chain of facts in `place`.
 * @param {HTMLElement} place @param {{namespace: string, name: string}} tenant
 * @param {string} about such as tenant, host/shop.example.org or who-can-see
 */
export async function explain(place, tenant, about, signal) {
  replace(place, h("p", { class: "quiet" }, "Asking…"));
  try {
    const answer = await get(tenantPath(tenant.namespace, tenant.name, "explain"), { about }, signal);
    replace(place, chain(answer));
  } catch (error) {
    if (!signal?.aborted) replace(place, h("p", { class: "problem", role: "alert" }, error.message));
  }
}

function chain(answer) {
  return h(
    "div",
    { class: "explanation" },
    h("p", { class: "verdict" }, chip(answer.verdict, WORDS[answer.verdict]), " ", answer.summary),
    h("ol", {}, ...(answer.facts ?? []).map(fact)),
  );
}

function fact(each) {
  const { object, value, message, remedy, status } = each;
  const where = object.hidden
    ? "an object that you may not see"
    : [object.kind, [object.namespace, object.name].filter(Boolean).join("/"), object.field].filter(Boolean).join(" ");
  return h(
    "li",
    { class: `fact ${status.toLowerCase()}` },
    h("div", { class: "value" }, value || WORDS[status]),
    h("div", { class: "rule" }, each.rule),
    message && message !== value && h("div", { class: "message" }, message),
    remedy && h("div", { class: "remedy" }, `To change it: ${remedy}`),
    h("div", { class: "where" }, where),
  );
}
