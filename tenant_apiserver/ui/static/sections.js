/** The sections of the panel: each builds its elements from what is known of a tenant. */

import { h } from "./dom.js";
import { age, messageText, plural, statusClass, statusWord, visible } from "./format.js";
import { conditionOf } from "./store.js";

/**
 * @typedef {object} Actions
 * @property {(about: string, field: string, title: string) => void} why
 * @property {(workload: string) => void} openWorkload
 * @property {(workload: string) => string} nameOf the tenant with a workload namespace, or the namespace if it is hidden
 * @property {(section: string) => number} pageOf
 * @property {(section: string, page: number) => void} turn
 */

const SERVICES = ["gateway", "ingress", "etcd", "monitoring", "seaweedfs", "computeplane"];
const ROWS_OF_A_PAGE = 6;
const DAYS_THAT_ARE_FEW = 14;

/** @param {string} title @param {...(Node | null | false | undefined)} content */
function section(title, ...content) {
  return h("section", {}, h("h3", {}, title), ...content);
}

/** @param {Actions} actions @param {string} about @param {string} field @param {string} title */
function why(actions, about, field, title) {
  const shown = visible(title);
  return h("button", { type: "button", class: "why", "data-focus": `why ${about} ${field}`, "aria-label": `Why? ${shown}`, onclick: () => actions.why(about, field, shown) }, "Why?");
}

/** @param {any} tenant @param {Actions} actions */
export function readinessOf(tenant, actions) {
  const ready = conditionOf(tenant);
  if (!ready || ready.status === "True") return null;
  return h("div", { class: `callout ${statusClass(ready.status)}` },
    h("p", {}, h("strong", {}, `${statusWord(ready.status)}: ${messageText(ready.reason)}`)), h("p", {}, messageText(ready.message)),
    why(actions, "tenant", "status.conditions[Ready]", `${tenant.metadata.name} is not ready`));
}

/** @param {any} tenant @param {Actions} actions */
export function domainOf(tenant, actions) {
  const { status = {}, spec = {} } = tenant;
  const own = Boolean(spec.host);
  const rows = [
    factRow("Domain", status.host?.value || "not known yet", own ? "its own" : from(actions, status.host?.namespace, status.namespace), why(actions, "tenant", "status.host", "This domain")),
    factRow("Namespace", status.namespace ?? "", null, why(actions, "tenant", "status.namespace", "This namespace")),
    ...(spec.schedulingClass ? [factRow("Scheduling class", spec.schedulingClass, null, null)] : []),
  ];
  return section("Where it is", h("dl", { class: "facts" }, ...rows));
}

/** @param {any} tenant @param {Actions} actions */
export function servicesOf(tenant, actions) {
  const { status = {}, spec = {} } = tenant;
  const rows = SERVICES.map((name) => {
    const provider = name === "gateway" ? status.gateway?.namespace : status.services?.[name];
    const field = name === "gateway" ? "status.gateway" : `status.services.${name}`;
    const state = provider ? (provider === status.namespace ? "its own" : from(actions, provider, status.namespace)) : spec[name] ? "asked for" : "none";
    return factRow(name, null, state, name === "computeplane" && !provider ? null : why(actions, "tenant", field, `${name}: ${typeof state === "string" ? state : "from an ancestor"}`), provider ? "has" : "lacks");
  });
  return section("What it has, and from whom", h("dl", { class: "facts services" }, ...rows));
}

/** @param {string} term @param {string | null} value @param {Node | string | null} note @param {Node | null} button @param {string} [style] */
function factRow(term, value, note, button, style = "") {
  return h("div", { class: style }, h("dt", {}, term), h("dd", {}, value && visible(value), value && note ? " " : null, note && h("span", { class: "note" }, note)), button && h("dd", { class: "action" }, button));
}

/** @param {Actions} actions @param {string | undefined} workload @param {string | undefined} own */
function from(actions, workload, own) {
  if (!workload || workload === own) return workload ? "its own" : null;
  return h("button", { type: "button", class: "link", "data-focus": `open ${workload}`, onclick: () => actions.openWorkload(workload) }, `from ${actions.nameOf(workload)}`);
}

/** @param {import("./quotas.js").QuotaRow[]} rows @param {Actions} actions */
export function quotaOf(rows, actions) {
  if (!rows.length) return section("Quota", h("div", { class: "line" }, h("p", { class: "note" }, "None is declared: the quota of an ancestor applies, if it has one."), why(actions, "tenant", "spec.resourceQuotas", "Whose quota applies")));
  const bars = pageOf("quota", rows, actions, (row) => {
    const bar = h("div", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--allocated", `${row.allocatedShare * 100}%`);
    bar.style.setProperty("--used", `${(row.allocatedShare + row.usedShare) * 100}%`);
    const parts = [`${row.allocated} declared by children`, row.used === undefined ? "" : `${row.used} used`].filter(Boolean);
    const tight = row.allocatedShare + row.usedShare >= 0.9;
    return h("li", { class: tight ? "quota tight" : "quota" }, h("div", { class: "line" }, h("strong", {}, visible(row.resource)), h("span", {}, visible(`${row.left} left of ${row.declared}`)), why(actions, "tenant", `quota ${row.resource}`, `${row.left} ${row.resource} left`)), bar, h("p", { class: "note" }, parts.join(", ")));
  });
  return section("Quota", ...bars);
}

/** @param {import("./hosts.js").HostRow[] | undefined} rows @param {Actions} actions */
export function hostsOf(rows, actions) {
  if (!rows) return section("Hostnames", denied("routes"));
  if (!rows.length) return section("Hostnames", h("p", { class: "note" }, "No route of the tenant has a hostname. An HTTPRoute in its namespace adds one."));
  return section("Hostnames", ...pageOf("hosts", rows, actions, (row) => h("li", { class: "hostname" },
    h("div", { class: "line" }, h("span", { class: "strong" }, visible(row.hostname)), h("span", { class: `chip ${statusClass(row.served)}` }, row.state), why(actions, `host/${row.hostname}`, "", row.hostname)),
    h("p", { class: "note" }, messageText([row.from, row.reason, certificateText(row)].filter(Boolean).join(" · "))))));
}

/** @param {import("./hosts.js").HostRow} row */
function certificateText({ certificate, isHidden, days }) {
  if (isHidden) return ["certificate", certificate, "not visible to you"].filter(Boolean).join(" ");
  if (!certificate) return "no certificate";
  if (days === undefined) return `certificate ${certificate}: not issued yet`;
  if (days < 0) return `certificate ${certificate} has ended`;
  return `certificate ${certificate}: ${plural(days, "day")} left${days < DAYS_THAT_ARE_FEW ? ", renew it" : ""}`;
}

/** @param {any} tenant @param {Actions} actions */
export function conditionsOf(tenant, actions) {
  const all = (tenant.status?.conditions ?? []).filter((/** @type {any} */ each) => each.type !== "Ready");
  const order = { False: 0, Unknown: 1, True: 2 };
  all.sort((/** @type {any} */ a, /** @type {any} */ b) => order[/** @type {"True"} */ (a.status)] - order[/** @type {"True"} */ (b.status)]);
  return section("Conditions", ...pageOf("conditions", all, actions, (each) => h("li", { class: "condition" },
    h("div", { class: "line" }, h("strong", { class: `state ${statusClass(each.status)}` }, visible(each.type)), h("span", { class: "note" }, messageText(each.reason)), why(actions, "tenant", `status.conditions[${each.type}]`, each.type)),
    h("p", { class: "note" }, messageText(each.message)))));
}

/** @param {import("./details.js").TenantEvent[] | undefined} events @param {Actions} actions */
export function eventsOf(events, actions) {
  if (!events) return section("Events", denied("Events"));
  if (!events.length) return section("Events", h("p", { class: "note" }, "None. A cluster keeps Events for an hour."));
  const now = Date.now();
  return section("Events", ...pageOf("events", events, actions, (each) => h("li", { class: `event ${each.type === "Warning" ? "unsure" : ""}` },
    h("div", { class: "line" }, h("strong", {}, messageText(each.reason)), h("span", { class: "note" }, `${age(each.time, now)}${each.count > 1 ? ` · ${each.count} times` : ""}`)), h("p", { class: "note" }, messageText(each.message)))));
}

/** @param {string} kind */
function denied(kind) {
  return h("p", { class: "note" }, `You may not list ${kind} here, or the cluster does not serve them.`);
}

/**
 * A list of which one page is shown, so that the document stays small.
 * @template T
 * @param {string} name @param {T[]} rows @param {Actions} actions @param {(row: T) => Node} build
 */
function pageOf(name, rows, actions, build) {
  const pages = Math.ceil(rows.length / ROWS_OF_A_PAGE);
  const page = Math.min(actions.pageOf(name), pages - 1);
  const shown = rows.slice(page * ROWS_OF_A_PAGE, (page + 1) * ROWS_OF_A_PAGE);
  const button = (/** @type {string} */ text, /** @type {number} */ to) => h("button", { type: "button", "data-focus": `${name} ${text}`, "aria-disabled": to < 0 || to >= pages, "aria-label": `${text} ${name}`, onclick: () => to >= 0 && to < pages && actions.turn(name, to) }, text);
  return [h("ul", { class: "items" }, ...shown.map(build)),
    pages > 1 && h("div", { class: "pager" }, button("Previous", page - 1), h("span", {}, `${page + 1} of ${pages}`), button("Next", page + 1))];
}
