/** The quota of a tenant: declared, promised to children, used, and left, as `kubectl tenant quota` has it. Pure. */

import { quantityLike } from "./format.js";
import { comparable, limitsOf } from "./quota-keys.js";

/** @typedef {import("./quota-keys.js").Ratios} Ratios */
/** @typedef {{claimed: Map<string, number>, used: Map<string, number>}} Sums by resource: what tenants declare, and what they use besides */

/**
 * @typedef {object} QuotaRow
 * @property {string} resource
 * @property {string} declared
 * @property {string} allocated what the children declare of it
 * @property {string | undefined} used the use of the tenant and of those that share its quota, undefined where it is not known
 * @property {string} left what admission grants to children
 * @property {number} allocatedShare from 0 to 1
 * @property {number} usedShare from 0 to 1
 */

/** @returns {Sums} */
export function noSums() {
  return { claimed: new Map(), used: new Map() };
}

/**
 * A row for each key that the tenant declares.
 * @param {Record<string, unknown> | undefined} quotas spec.resourceQuotas
 * @param {Sums} sums of what is below the tenant, with its own use
 * @param {Ratios} ratios
 * @returns {QuotaRow[]}
 */
export function quotaRows(quotas, sums, ratios) {
  const binding = comparable(quotas, ratios);
  return Object.keys(quotas ?? {}).sort().flatMap((key) => {
    const rests = limitsOf(key, quotas[key], ratios).map(([resource, own]) => restOf(own, binding.get(resource) ?? 0, sums.claimed.get(resource) ?? 0, sums.used.get(resource)));
    return rests.length ? [rowOf(key, quotas[key], rests.reduce((best, each) => (each.left < best.left ? each : best)))] : [];
  });
}

/**
 * Adds what a tenant and those below it take to the sums of its parent.
 * @param {Sums} parent @param {Sums} own @param {Map<string, number>} limits what the tenant declares
 */
export function handUp(parent, own, limits) {
  const add = (/** @type {Map<string, number>} */ sums, /** @type {string} */ key, /** @type {number} */ value) => sums.set(key, (sums.get(key) ?? 0) + value);
  for (const [key, limit] of limits) add(parent.claimed, key, limit);
  for (const [key, claimed] of own.claimed) if (!limits.has(key)) add(parent.claimed, key, claimed);
  for (const [key, used] of own.used) {
    const limit = limits.get(key);
    // a quota that was lowered below its use frees nothing
    const beyond = limit === undefined ? used : used && Math.max(0, used + (own.claimed.get(key) ?? 0) - limit);
    if (beyond) add(parent.used, key, beyond);
  }
}

/** The rest that one resource leaves of a key, in its unit. @param {import("./quota-keys.js").Limit} own @param {number} bound @param {number} claimed @param {number | undefined} used */
function restOf({ amount: limit, declared, ratio }, bound, claimed, used) {
  const whole = bound < limit ? bound * ratio : declared;
  const taken = claimed + (used ?? 0);
  // divided amounts are rounded: both of these are granted
  const left = Math.min(whole, Math.max(whole - taken * ratio, (bound - taken) * ratio, 0));
  return { whole, left, allocated: claimed * ratio, used: used === undefined ? undefined : used * ratio };
}

/** @param {string} resource @param {unknown} like @param {ReturnType<typeof restOf>} rest @returns {QuotaRow} */
function rowOf(resource, like, { whole, left, allocated, used }) {
  const share = (/** @type {number} */ part) => (whole > 0 ? Math.min(1, part / whole) : part > 0 ? 1 : 0);
  return {
    resource,
    declared: String(like),
    allocated: quantityLike(like, allocated),
    used: used === undefined ? undefined : quantityLike(like, used),
    left: quantityLike(like, left),
    allocatedShare: share(allocated),
    usedShare: Math.min(share(used ?? 0), 1 - share(allocated)),
  };
}

/** The resource of which the smallest share is left. @param {QuotaRow[]} rows @returns {QuotaRow | undefined} */
export function fullest(rows) {
  const taken = (/** @type {QuotaRow} */ row) => row.allocatedShare + row.usedShare;
  return rows.reduce((best, row) => (best && taken(best) >= taken(row) ? best : row), /** @type {any} */ (undefined));
}
