/** What the user may do with Tenants, as the API reviews it: the page offers nothing else. */

import { ApiError, request } from "./api.js";

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/** The tenants that are tried for a new one, at most: each is a request. */
const MOST_PARENTS = 20;

/** @typedef {"edit" | "add" | "delete"} Action */
/** @typedef {Record<Action, boolean | undefined>} Rights of one tenant; undefined while it has no namespace for children yet */
/** @typedef {{workload: string, name: string}} Parent its namespace is where children lie */

/** @type {Record<Action, string>} */
const WORDS = { edit: "edit", add: "add children to", delete: "delete" };

/**
 * True also if the cluster answers no reviews: then it judges the request itself.
 * @param {string} verb @param {string} namespace @param {string} [name] @param {AbortSignal} [signal]
 */
export async function may(verb, namespace, name, signal) {
  const resourceAttributes = { group: "apps.cozystack.io", resource: "tenants", verb, namespace, name };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  try {
    return (await request("POST", REVIEWS, { body, signal })).object?.status?.allowed === true;
  } catch (error) {
    if (error instanceof ApiError) return true;
    throw error;
  }
}

/** @param {any} tenant @param {AbortSignal} signal @returns {Promise<Rights>} */
export async function readRights(tenant, signal) {
  const { namespace, name } = tenant.metadata;
  const workload = tenant.status?.namespace;
  const [edit, add, remove] = await Promise.all([
    may("patch", namespace, name, signal), workload ? may("create", workload, undefined, signal) : undefined, may("delete", namespace, name, signal),
  ]);
  return { edit, add, delete: remove };
}

/** A sentence about what the user may not do with the tenant, empty if there is nothing. @param {Rights} rights */
export function missingRights(rights) {
  const missing = /** @type {Action[]} */ (Object.keys(WORDS)).filter((each) => rights[each] === false).map((each) => WORDS[each]);
  if (!missing.length) return "";
  const last = missing.pop();
  return `You may not ${missing.length ? `${missing.join(", ")} or ${last}` : last} this tenant.`;
}

/** The first of these below which the user may create a tenant. @param {Iterable<Parent>} candidates @returns {Promise<Parent | undefined>} */
export async function findParent(candidates) {
  const tried = new Set();
  for (const each of candidates) {
    if (!each.workload || tried.has(each.workload)) continue;
    if (tried.size === MOST_PARENTS) return undefined;
    tried.add(each.workload);
    if (await may("create", each.workload)) return each;
  }
  return undefined;
}
