/** Reads what the panel shows of one tenant. What the user may not list is undefined, which is not the same as none. */

import { ApiError, get, tenantPath } from "./api.js";
import { hostRows } from "./hosts.js";
import { ratiosOf } from "./quota-keys.js";

const POOL = "tenant-pool";
const GATEWAY_API = "/apis/gateway.networking.k8s.io/v1";
const ROUTES = new Map([["httproutes", "HTTPRoute"], ["grpcroutes", "GRPCRoute"], ["tlsroutes", "TLSRoute"]]);
const MOST_EVENTS = 100;

/**
 * @typedef {object} Details
 * @property {any} tenant
 * @property {Record<string, unknown> | undefined} used of its namespace, from the ResourceQuota of its pool
 * @property {import("./hosts.js").HostRow[] | undefined} hosts
 * @property {TenantEvent[] | undefined} events the newest first
 */

/** @typedef {{type: string, reason: string, message: string, time: string, count: number}} TenantEvent */

/**
 * Raises ApiError if the Tenant itself cannot be read.
 * @param {string} namespace @param {string} name @param {AbortSignal} signal
 * @returns {Promise<Details>}
 */
export async function readDetails(namespace, name, signal) {
  const tenant = await get(tenantPath(namespace, name), {}, signal);
  const workload = tenant.status?.namespace ?? "";
  const [used, hosts, events] = await Promise.all([
    readUsed(workload, signal), readHosts(tenant, workload, signal), readEvents(namespace, name, signal),
  ]);
  return { tenant, used, hosts, events };
}

/** @param {string} workload @param {AbortSignal} signal */
async function readUsed(workload, signal) {
  const found = await items(`/api/v1/namespaces/${workload}/resourcequotas`, signal, { fieldSelector: `metadata.name=${POOL}` });
  return found?.[0]?.status?.used;
}

/** The use of every namespace that the user may list, by namespace. @param {AbortSignal} signal @returns {Promise<Map<string, any>>} */
export async function readAllUsed(signal) {
  const found = await items("/api/v1/resourcequotas", signal, { fieldSelector: `metadata.name=${POOL}` });
  return new Map((found ?? []).filter((each) => each.status?.used).map((each) => [each.metadata.namespace, each.status.used]));
}

/** The platform's allocation ratios, of which every tenant tells those who may ask. @param {string} namespace @param {string} name @param {AbortSignal} signal */
export async function readRatios(namespace, name, signal) {
  return ratiosOf(await get(tenantPath(namespace, name, "explain"), { about: "tenant" }, signal));
}

/** @param {any} tenant @param {string} workload @param {AbortSignal} signal */
async function readHosts(tenant, workload, signal) {
  const provider = tenant.status?.gateway?.namespace ?? "";
  const [gateways, certificates, ...routes] = await Promise.all([
    provider ? items(`/apis/gateway.cozystack.io/v1alpha1/namespaces/${provider}/tenantgateways`, signal) : [],
    provider ? items(`/apis/cert-manager.io/v1/namespaces/${provider}/certificates`, signal) : [],
    ...[...ROUTES].map(([plural, kind]) => readRoutes(workload, plural, kind, signal)),
  ]);
  if (gateways === undefined && routes.every((each) => each === undefined)) return undefined;
  const known = routes.flatMap((each) => each ?? []);
  return hostRows(known, gateways, certificates, provider === workload, Date.now());
}

/** The items of a list have no kind of their own. @param {string} workload @param {string} plural @param {string} kind @param {AbortSignal} signal */
async function readRoutes(workload, plural, kind, signal) {
  const found = await items(`${GATEWAY_API}/namespaces/${workload}/${plural}`, signal);
  return found?.map((each) => ({ ...each, kind }));
}

/** @param {string} namespace @param {string} name @param {AbortSignal} signal @returns {Promise<TenantEvent[] | undefined>} */
async function readEvents(namespace, name, signal) {
  const fieldSelector = `involvedObject.kind=Tenant,involvedObject.name=${name}`;
  const found = await items(`/api/v1/namespaces/${namespace}/events`, signal, { fieldSelector, limit: String(MOST_EVENTS) });
  return found?.map(eventOf).sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
}

/** @param {any} event @returns {TenantEvent} */
function eventOf(event) {
  const { type = "Normal", reason = "", message = "", series } = event;
  const time = series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";
  return { type, reason, message, time, count: series?.count ?? event.count ?? 1 };
}

/** Undefined if the user may not list the kind, or the cluster does not serve it. @param {string} path @param {AbortSignal} signal @param {Record<string, string>} [query] @returns {Promise<any[] | undefined>} */
async function items(path, signal, query = {}) {
  try {
    return (await get(path, query, signal)).items ?? [];
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
