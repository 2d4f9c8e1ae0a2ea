/** The hostnames of a tenant: who asks for each, whether it is served, and how long its certificate lasts. Pure. */

import { daysLeft } from "./format.js";
import { conditionOf } from "./store.js";

/**
 * @typedef {object} HostRow
 * @property {string} hostname
 * @property {string} from the route as KIND/NAME, or the listener of the tenant's own Gateway
 * @property {"True" | "False" | "Unknown"} served True if a route is accepted, and its listener and certificate are ready
 * @property {string} state the same in words: "Served", or how far it is
 * @property {string} reason
 * @property {string} certificate its name, empty without one, or where the user may not see it
 * @property {boolean} isHidden true if the user may not see the certificate
 * @property {number | undefined} days until the certificate ends
 */

/** @typedef {Pick<HostRow, "served" | "state" | "reason">} State */

/**
 * A row for each hostname of the routes, and for each listener of the tenant's own Gateway that no route has.
 * @param {any[]} routes HTTPRoutes, GRPCRoutes and TLSRoutes of the tenant's namespace
 * @param {any[] | undefined} gateways the TenantGateway that serves the tenant, or none; undefined if the user may not see it
 * @param {any[] | undefined} certificates those of the Gateway's namespace, undefined if the user may not see them
 * @param {boolean} isOwn true if the TenantGateway is the tenant's
 * @param {number} now milliseconds
 * @returns {HostRow[]} sorted by hostname
 */
export function hostRows(routes, gateways, certificates, isOwn, now) {
  const listeners = new Map((gateways?.[0]?.status?.listeners ?? []).filter((/** @type {any} */ each) => each.hostname)
    .map((/** @type {any} */ each) => [each.hostname, each]));
  const byName = new Map(certificates?.map((each) => [each.metadata.name, each]));
  const row = (/** @type {string} */ hostname, /** @type {string} */ from, /** @type {State | undefined} */ problem, /** @type {State} */ ready) => {
    const listener = listenerOf(hostname, listeners);
    const name = listener?.certificateName ?? "";
    const certificate = byName.get(name);
    const days = daysLeft(certificate?.status?.notAfter, now);
    const isHidden = !gateways || (Boolean(name) && !certificates);
    return { hostname, from, ...(problem ?? certificateProblem(certificate, days) ?? listenerProblem(listener) ?? ready), certificate: name, isHidden, days };
  };
  const rows = routes.flatMap((route) => (route.spec?.hostnames ?? []).map((/** @type {string} */ hostname) =>
    row(hostname, `${route.kind}/${route.metadata.name}`, routeProblem(route), { served: "True", state: "Served", reason: "" })));
  const routed = new Set(rows.map((each) => each.hostname));
  const used = new Set(rows.map((each) => listenerOf(each.hostname, listeners)));
  for (const [hostname, listener] of isOwn ? listeners : []) {
    if (routed.has(hostname)) continue;
    const reason = used.has(listener) ? "" : "no route that you see in the tenant's namespace has it";
    rows.push(row(hostname, `listener ${listener.name}`, undefined, { served: "Unknown", state: "Listener ready", reason }));
  }
  return rows.sort((a, b) => (a.hostname < b.hostname ? -1 : a.hostname > b.hostname ? 1 : a.from < b.from ? -1 : 1));
}

/** The listener with the hostname, or else with a wildcard for it. @param {string} hostname @param {Map<string, any>} listeners */
function listenerOf(hostname, listeners) {
  return listeners.get(hostname) ?? listeners.get(`*.${hostname.split(".").slice(1).join(".")}`);
}

/** The first reason why a controller has not accepted it; none if each that has reported has. @param {any} route @returns {State | undefined} */
function routeProblem(route) {
  const accepted = (route.status?.parents ?? []).flatMap((/** @type {any} */ parent) =>
    (parent.conditions ?? []).filter((/** @type {any} */ each) => each.type === "Accepted"));
  const problem = accepted.find((/** @type {any} */ each) => each.status !== "True");
  if (problem) return { served: problem.status, state: problem.status === "False" ? "Not served" : "Not known", reason: problem.reason ?? "" };
  return accepted.length ? undefined : { served: "Unknown", state: "Not known", reason: "no controller has reported" };
}

/** @param {any} certificate undefined without one @param {number | undefined} days @returns {State | undefined} */
function certificateProblem(certificate, days) {
  if (!certificate) return undefined;
  const ready = conditionOf(certificate);
  if (ready?.status !== "True") return { served: "False", state: "Certificate not ready", reason: ready?.reason ?? "" };
  return days !== undefined && days < 0 ? { served: "False", state: "Certificate has ended", reason: "" } : undefined;
}

/** Its own state, and that of its certificate as the TenantGateway tells it. @param {any} listener @returns {State | undefined} */
function listenerProblem(listener) {
  if (!listener || listener.ready) return undefined;
  if (listener.ready === undefined) return { served: "Unknown", state: "Not known", reason: "the Gateway has not reported" };
  if (listener.reason === "CertificateNotReady") return { served: "False", state: "Certificate not ready", reason: "" };
  return { served: "False", state: "Listener not ready", reason: listener.reason ?? "" };
}
