/** Reads what the panel shows of one tenant. What the user may not list is undefined, which is not the same as none. */

import { ApiError, get, tenantPath } from "./api.js";
import { hostRows } from "./hosts.js";
import { ratiosOf } from "./quota-keys.js";

const POOL = "tenant-pool";
const GATEWAY_API = "gateway.networking.k8s.io";
const ROUTES = new Map([["httproutes", "HTTPRoute"], ["grpcroutes", "GRPCRoute"], ["tlsroutes", "TLSRoute"]]);
/** Of the kinds of routes, the best first: old releases of Gateway API have TLSRoutes in the latter two alone. */
const VERSIONS = ["v1", "v1alpha3", "v1alpha2"];
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
  const served = await servedRoutes(signal);
  const [gateways, certificates, ...routes] = await Promise.all([
    provider ? items(`/apis/gateway.cozystack.io/v1alpha1/namespaces/${provider}/tenantgateways`, signal) : [],
    provider ? items(`/apis/cert-manager.io/v1/namespaces/${provider}/certificates`, signal) : [],
    ...[...served].map(([plural, version]) => readRoutes(workload, version, plural, ROUTES.get(plural) ?? "", signal)),
  ]);
  if (gateways === undefined && routes.every((each) => each === undefined)) return undefined;
  const known = routes.flatMap((each) => each ?? []);
  return hostRows(known, gateways, certificates, provider === workload, Date.now());
}

/** The items of a list have no kind of their own. None if the cluster does not serve the kind. @param {string} workload @param {string} version @param {string} plural @param {string} kind @param {AbortSignal} signal */
async function readRoutes(workload, version, plural, kind, signal) {
  const found = await items(`/apis/${GATEWAY_API}/${version}/namespaces/${workload}/${plural}`, signal);
  return found?.map((each) => ({ ...each, kind }));
}

/**
 * The best version of each kind of route that the cluster serves. A list of another version is refused to people with
 * few rights before it is said to be missing, so discovery tells; without it, the current version is asked for.
 * @param {AbortSignal} signal @returns {Promise<Map<string, string>>} by plural
 */
export async function servedRoutes(signal) {
  /** @type {Map<string, string>} */
  const found = new Map();
  try {
    const { groups = [] } = await get("/apis", {}, signal);
    const served = new Set(groups.find((/** @type {any} */ each) => each.name === GATEWAY_API)?.versions.map((/** @type {any} */ each) => each.version));
    for (const version of VERSIONS.filter((each) => served.has(each))) {
      if (found.size === ROUTES.size) break;
      const { resources = [] } = await get(`/apis/${GATEWAY_API}/${version}`, {}, signal);
      for (const { name } of resources) if (ROUTES.has(name) && !found.has(name)) found.set(name, version);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return new Map([...ROUTES.keys()].map((each) => [each, VERSIONS[0]]));
  }
  return found;
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
