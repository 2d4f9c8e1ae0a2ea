/**
 * The resources that the keys of spec.resourceQuotas limit, as admission compares them: registry/tenant/quota_keys.py
 * has the same rules. Keys that limit nothing are not recognised, because admission refuses them. Pure.
 */

import { amount } from "./format.js";

/** @typedef {{cpu: number, memory: number, "ephemeral-storage": number}} Ratios by how much limits may exceed requests */
/** @typedef {{amount: number, declared: number, ratio: number}} Limit `amount` is what is declared, divided by the ratio */

/** Requests as large as limits. @type {Ratios} */
export const EQUAL = { cpu: 1, memory: 1, "ephemeral-storage": 1 };

const COUNTED = /^count\/(services|replicationcontrollers|resourcequotas|secrets|configmaps|persistentvolumeclaims)$/;
const OF_CLASS = /\.storageclass\.storage\.k8s\.io\/(requests\.storage|persistentvolumeclaims)$|\.deviceclass\.resource\.k8s\.io\/devices$/;
// products of floating-point numbers differ from whole ones by less
const ROUNDING = 1e-6;

/** The ratios in the explanation of a tenant. @param {any} explanation @returns {Ratios} */
export function ratiosOf({ allocationRatios: found }) {
  return found ? { cpu: Number(found.cpu), memory: Number(found.memory), "ephemeral-storage": Number(found.ephemeralStorage) } : EQUAL;
}

/** The limits that one key sets, by resource. @param {string} key @param {unknown} value @param {Ratios} ratios @returns {[string, Limit][]} */
export function limitsOf(key, value, ratios) {
  const declared = amount(value);
  if (Number.isNaN(declared)) return [];
  if (!Object.hasOwn(EQUAL, key)) return [[canonical(key), { amount: declared, declared, ratio: 1 }]];
  const ratio = ratios[/** @type {keyof Ratios} */ (key)];
  return [[`limits.${key}`, { amount: declared, declared, ratio: 1 }], [`requests.${key}`, { amount: divided(key, declared, ratio), declared, ratio }]];
}

/** The smallest limit of each resource. @param {Record<string, unknown> | undefined} quotas @param {Ratios} ratios @returns {Map<string, number>} */
export function comparable(quotas, ratios) {
  /** @type {Map<string, number>} */ const found = new Map();
  for (const [key, value] of Object.entries(quotas ?? {})) {
    for (const [resource, limit] of limitsOf(key, value, ratios)) found.set(resource, Math.min(limit.amount, found.get(resource) ?? Infinity));
  }
  return found;
}

/** The use that a ResourceQuota has counted, by resource. @param {Record<string, unknown> | undefined} used @returns {Map<string, number>} */
export function usedOf(used) {
  return new Map(Object.entries(used ?? {}).map(([key, value]) => [Object.hasOwn(EQUAL, key) ? `requests.${key}` : canonical(key), amount(value) || 0]));
}

/** The one name of a resource that has several. @param {string} key */
function canonical(key) {
  if (key.startsWith("hugepages-") || key === "storage") return `requests.${key}`;
  if (COUNTED.test(key)) return key.slice("count/".length);
  return key.includes("/") && !/^(count\/|requests\.|limits\.)/.test(key) && !OF_CLASS.test(key) ? `requests.${key}` : key;
}

/** Rounded as the chart of tenants does it. @param {string} key @param {number} declared @param {number} ratio */
function divided(key, declared, ratio) {
  if (ratio === 1) return declared;
  return key === "cpu" ? Math.ceil((declared / ratio) * 1000 - ROUNDING) / 1000 : Math.floor(declared / ratio + ROUNDING);
}
