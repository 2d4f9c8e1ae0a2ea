/** The quota of a tenant: declared, promised to children, used, and left. Pure. */

import { amount, quantityLike } from "./format.js";

/**
 * @typedef {object} QuotaRow
 * @property {string} resource
 * @property {string} declared
 * @property {string} allocated what the children declare of it
 * @property {string | undefined} used the use of the tenant's own namespace, undefined where it is not known
 * @property {string} left
 * @property {number} allocatedShare from 0 to 1
 * @property {number} usedShare from 0 to 1
 */

/**
 * A row for each resource that the tenant declares, as `kubectl tenant quota` has them.
 * @param {Record<string, unknown> | undefined} declared spec.resourceQuotas
 * @param {Iterable<Record<string, unknown> | undefined>} children the same of each child
 * @param {Record<string, unknown> | undefined} used status.used of the pool's ResourceQuota
 * @returns {QuotaRow[]}
 */
export function quotaRows(declared, children, used) {
  const below = [...children];
  return Object.keys(declared ?? {}).sort().map((resource) => {
    const like = declared[resource];
    const limit = amount(like) || 0;
    const allocated = below.reduce((sum, each) => sum + (amount(each?.[resource]) || 0), 0);
    // a ResourceQuota counts what is declared as cpu as limits.cpu
    const taken = amount(used?.[resource] ?? used?.[`limits.${resource}`]);
    const rest = Math.max(0, limit - allocated - (taken || 0));
    const share = (/** @type {number} */ part) => (limit > 0 ? Math.min(1, part / limit) : part > 0 ? 1 : 0);
    return {
      resource,
      declared: String(like),
      allocated: quantityLike(like, allocated),
      used: Number.isNaN(taken) ? undefined : quantityLike(like, taken),
      left: quantityLike(like, rest),
      allocatedShare: share(allocated),
      usedShare: Math.min(share(taken || 0), 1 - share(allocated)),
    };
  });
}

/** The resource of which the smallest share is left. @param {QuotaRow[]} rows @returns {QuotaRow | undefined} */
export function fullest(rows) {
  const taken = (/** @type {QuotaRow} */ row) => row.allocatedShare + row.usedShare;
  return rows.reduce((best, row) => (best && taken(best) >= taken(row) ? best : row), /** @type {any} */ (undefined));
}
