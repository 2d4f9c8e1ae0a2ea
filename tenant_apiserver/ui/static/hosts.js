/** The hostnames of a tenant: who asks for each, whether it is served, and how long its certificate lasts. Pure. */

import { daysLeft } from "./format.js";

/**
 * @typedef {object} HostRow
 * @property {string} hostname
 * @property {string} from the route as KIND/NAME, or the listener of the tenant's own Gateway
 * @property {"True" | "False" | "Unknown"} served
 * @property {string} reason
 * @property {string} certificate its name, empty without one
 * @property {number | undefined} days until the certificate ends
 */

/**
 * A row for each hostname of the routes, and for each listener of the tenant's own Gateway that no route has.
 * @param {any[]} routes HTTPRoutes, GRPCRoutes and TLSRoutes of the tenant's namespace
 * @param {any} gateway the TenantGateway that serves the tenant, if it may be read
 * @param {any[]} certificates those of the Gateway's namespace
 * @param {boolean} isOwn true if the TenantGateway is the tenant's
 * @param {number} now milliseconds
 * @returns {HostRow[]} sorted by hostname
 */
export function hostRows(routes, gateway, certificates, isOwn, now) {
  const listeners = new Map((gateway?.status?.listeners ?? []).filter((/** @type {any} */ each) => each.hostname)
    .map((/** @type {any} */ each) => [each.hostname, each]));
  const byName = new Map(certificates.map((each) => [each.metadata.name, each]));
  const row = (/** @type {string} */ hostname, /** @type {string} */ from, /** @type {any} */ state) => {
    const certificate = listenerOf(hostname, listeners)?.certificateName ?? "";
    return { hostname, from, ...state, certificate, days: daysLeft(byName.get(certificate)?.status?.notAfter, now) };
  };
  const rows = routes.flatMap((route) => (route.spec?.hostnames ?? []).map((/** @type {string} */ hostname) =>
    row(hostname, `${route.kind}/${route.metadata.name}`, routeState(route))));
  const routed = new Set(rows.map((each) => each.hostname));
  for (const [hostname, listener] of isOwn ? listeners : []) {
    if (routed.has(hostname)) continue;
    const served = listener.ready === undefined ? "Unknown" : listener.ready ? "True" : "False";
    rows.push(row(hostname, `listener ${listener.name}`, { served, reason: listener.reason ?? "" }));
  }
  return rows.sort((a, b) => (a.hostname < b.hostname ? -1 : a.hostname > b.hostname ? 1 : a.from < b.from ? -1 : 1));
}

/** The listener with the hostname, or else with a wildcard for it. @param {string} hostname @param {Map<string, any>} listeners */
function listenerOf(hostname, listeners) {
  return listeners.get(hostname) ?? listeners.get(`*.${hostname.split(".").slice(1).join(".")}`);
}

/** Accepted by every controller that has reported, or the first reason why not. @param {any} route */
function routeState(route) {
  const accepted = (route.status?.parents ?? []).flatMap((/** @type {any} */ parent) =>
    (parent.conditions ?? []).filter((/** @type {any} */ each) => each.type === "Accepted"));
  const problem = accepted.find((/** @type {any} */ each) => each.status !== "True");
  if (problem) return { served: problem.status, reason: problem.reason ?? "" };
  return accepted.length ? { served: "True", reason: "" } : { served: "Unknown", reason: "no controller has reported" };
}
