/** The index of all tenants: what a row of the tree needs of each, and who lies below whom. Pure. */

import { comparable, EQUAL, usedOf } from "./quota-keys.js";
import { fullest, handUp, noSums, quotaRows } from "./quotas.js";

/**
 * @typedef {object} TenantNode
 * @property {string} key NAMESPACE/NAME
 * @property {string} name
 * @property {string} namespace where the Tenant lies: the workload namespace of its parent
 * @property {string} workload its own namespace, where its children lie
 * @property {string} host its effective domain
 * @property {string} ready status of the condition Ready
 * @property {string} reason of the condition Ready
 * @property {boolean} terminating
 * @property {Record<string, unknown> | undefined} quotas spec.resourceQuotas
 * @property {import("./quotas.js").Sums | undefined} sums what it uses, with those that share its quota, and what is declared below it; undefined until it is asked for
 * @property {import("./quotas.js").QuotaRow | null | undefined} tightest the fullest quota; undefined until it is asked for
 */

/**
 * @typedef {object} Row
 * @property {TenantNode} node
 * @property {number} level from 1
 * @property {number} position from 1, among the rows below the same parent
 * @property {number} size the number of these
 * @property {readonly boolean[]} guides for each level above, true if its line continues
 * @property {boolean} hasChildren
 * @property {boolean} expanded
 * @property {boolean} matches false for a tenant that is shown for what is below it
 */

/** @typedef {{text: string, state: "all" | "ready" | "notready"}} Filter */

const NONE = /** @type {TenantNode[]} */ (Object.freeze([]));

/** @param {any} tenant @returns {string} */
export function keyOf(tenant) {
  return `${tenant.metadata.namespace}/${tenant.metadata.name}`;
}

/** The condition of a type. @param {any} tenant @param {string} [type] */
export function conditionOf(tenant, type = "Ready") {
  return (tenant.status?.conditions ?? []).find((/** @type {any} */ each) => each.type === type);
}

export class TenantStore {
  constructor() {
    /** @type {Map<string, TenantNode>} */ this.nodes = new Map();
    /** @type {Map<string, TenantNode>} */ this._owners = new Map();
    /** @type {Map<string, TenantNode>} */ this._hosts = new Map();
    /** @type {Map<string, TenantNode[]>} */ this._below = new Map();
    /** @type {Set<string>} */ this._unsorted = new Set();
    /** @type {Map<string, Record<string, unknown>>} */ this._used = new Map();
    /** @type {import("./quota-keys.js").Ratios} */ this._ratios = EQUAL;
    this.readyCount = 0;
  }

  get size() {
    return this.nodes.size;
  }

  /** Adds a Tenant, or takes over its change. @param {any} tenant @returns {TenantNode} */
  put(tenant) {
    const key = keyOf(tenant);
    const ready = conditionOf(tenant);
    const node = this.nodes.get(key) ?? this._add(key, tenant.metadata.namespace, tenant.metadata.name);
    const counted = node.ready === "True" ? 1 : 0;
    const workload = tenant.status?.namespace ?? "";
    const host = tenant.status?.host?.value ?? "";
    if (node.workload !== workload) this._move(this._owners, node.workload, workload, node);
    if (node.host !== host) this._move(this._hosts, node.host, host, node);
    Object.assign(node, {
      workload,
      host,
      ready: ready?.status ?? "Unknown",
      reason: ready?.reason ?? "",
      terminating: Boolean(tenant.metadata.deletionTimestamp),
      quotas: tenant.spec?.resourceQuotas,
    });
    this.readyCount += (node.ready === "True" ? 1 : 0) - counted;
    this._forgetQuota(node);
    return node;
  }

  /** @param {string} key @returns {TenantNode | undefined} the tenant that was there */
  remove(key) {
    const node = this.nodes.get(key);
    if (!node) return undefined;
    this.nodes.delete(key);
    this._move(this._owners, node.workload, "", node);
    this._move(this._hosts, node.host, "", node);
    const siblings = this._below.get(node.namespace) ?? NONE;
    siblings.splice(siblings.indexOf(node), 1);
    if (!siblings.length) this._below.delete(node.namespace);
    if (node.ready === "True") this.readyCount -= 1;
    this._forgetQuota(this.parent(node));
    return node;
  }

  /** Removes the tenants that a new list does not have. @param {Set<string>} keys those that it has */
  retain(keys) {
    for (const key of [...this.nodes.keys()]) if (!keys.has(key)) this.remove(key);
  }

  /** @param {TenantNode} node @returns {readonly TenantNode[]} sorted by name */
  children(node) {
    const found = this._sorted(node.workload);
    return isRoot(node) ? found.filter((each) => each !== node) : found;
  }

  /** @param {TenantNode} node @returns {TenantNode | undefined} undefined if there is none, or it is hidden */
  parent(node) {
    return isRoot(node) ? undefined : this._owners.get(node.namespace);
  }

  /** The tenant with this workload namespace. @param {string} workload */
  owner(workload) {
    return this._owners.get(workload);
  }

  /** The tenant in whose domain a hostname is, the nearest. @param {string} hostname @returns {TenantNode | undefined} */
  ownerOfHost(hostname) {
    const labels = hostname.split(".");
    for (let at = 0; at < labels.length - 1; at += 1) {
      const found = this._hosts.get(labels.slice(at).join("."));
      if (found) return found;
    }
    return undefined;
  }

  /** The use of a namespace, from its ResourceQuota. @param {string} workload @param {Record<string, unknown>} used */
  putUsed(workload, used) {
    this._used.set(workload, used);
    this._forgetQuota(this._owners.get(workload));
  }

  /** The platform's allocation ratios, which quotas are compared with. @param {import("./quota-keys.js").Ratios} ratios */
  putRatios(ratios) {
    this._ratios = ratios;
    for (const node of this.nodes.values()) Object.assign(node, { sums: undefined, tightest: undefined });
  }

  /** @param {TenantNode} node */
  quota(node) {
    return quotaRows(node.quotas, this._sums(node), this._ratios);
  }

  /** @param {TenantNode} node @returns {import("./quotas.js").Sums} */
  _sums(node) {
    if (!node.sums) {
      // a cycle of damaged data ends here
      node.sums = noSums();
      node.sums.used = usedOf(this._used.get(node.workload));
      for (const each of this.children(node)) handUp(node.sums, this._sums(each), comparable(each.quotas, this._ratios));
    }
    return node.sums;
  }

  /** The resource of which the least is left, null without a quota. @param {TenantNode} node */
  tightest(node) {
    if (node.tightest === undefined) node.tightest = node.quotas ? (fullest(this.quota(node)) ?? null) : null;
    return node.tightest;
  }

  /**
   * The rows of the tree from top to bottom, parents before children.
   * @param {Set<string>} collapsed keys of tenants that hide what is below them; a filter shows it nevertheless
   * @param {Filter} filter
   * @returns {Row[]}
   */
  rows(collapsed, filter) {
    const shown = this._shown(filter);
    /** @type {Row[]} */ const rows = [];
    const walk = (/** @type {readonly TenantNode[]} */ all, /** @type {number} */ level, /** @type {readonly boolean[]} */ guides) => {
      const nodes = shown ? all.filter((each) => shown.has(each)) : all;
      nodes.forEach((node, index) => {
        const children = this.children(node);
        const hasChildren = shown ? children.some((each) => shown.has(each)) : children.length > 0;
        const expanded = hasChildren && (shown !== undefined || !collapsed.has(node.key));
        const matches = shown === undefined || shown.get(node) === true;
        rows.push({ node, level, position: index + 1, size: nodes.length, guides, hasChildren, expanded, matches });
        if (expanded) walk(children, level + 1, level > 1 ? [...guides, index < nodes.length - 1] : guides);
      });
    };
    walk(this.tops(), 1, []);
    return rows;
  }

  /** Those that a filter leaves, with their ancestors; true for those that match. @param {Filter} filter */
  _shown(filter) {
    const text = filter.text.trim().toLowerCase();
    if (!text && filter.state === "all") return undefined;
    /** @type {Map<TenantNode, boolean>} */ const shown = new Map();
    const owner = text.includes(".") ? this.ownerOfHost(text) : undefined;
    for (const node of this.nodes.values()) {
      if (filter.state !== "all" && (node.ready === "True") !== (filter.state === "ready")) continue;
      if (text && node !== owner && !node.name.includes(text) && !node.host.includes(text)) continue;
      shown.set(node, true);
      for (let at = this.parent(node); at && !shown.has(at); at = this.parent(at)) shown.set(at, false);
    }
    return shown;
  }

  /** The roots, and tenants whose parent is hidden. @returns {TenantNode[]} */
  tops() {
    const tops = [];
    for (const namespace of this._below.keys()) {
      const owner = this._owners.get(namespace);
      if (!owner) tops.push(...this._sorted(namespace));
      else if (isRoot(owner)) tops.push(owner);
    }
    return tops.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** @param {string} namespace */
  _sorted(namespace) {
    const found = this._below.get(namespace) ?? NONE;
    if (this._unsorted.delete(namespace)) found.sort((a, b) => (a.name < b.name ? -1 : 1));
    return found;
  }

  /** @param {string} key @param {string} namespace @param {string} name @returns {TenantNode} */
  _add(key, namespace, name) {
    const node = { key, namespace, name, workload: "", host: "", ready: "", reason: "", terminating: false, quotas: undefined, sums: undefined, tightest: undefined };
    this.nodes.set(key, node);
    const siblings = this._below.get(namespace);
    if (!siblings) this._below.set(namespace, [node]);
    else {
      if (siblings.at(-1)?.name > name) this._unsorted.add(namespace);
      siblings.push(node);
    }
    return node;
  }

  /** @param {Map<string, TenantNode>} index @param {string} before @param {string} after @param {TenantNode} node */
  _move(index, before, after, node) {
    if (index.get(before) === node) index.delete(before);
    if (after) index.set(after, node);
  }

  /** Of a tenant and of those above it: none is known above one whose sums are not. @param {TenantNode | undefined} node */
  _forgetQuota(node) {
    for (let at = node; at && (at === node || at.sums); at = this.parent(at)) at.sums = at.tightest = undefined;
  }
}

/** The root lies in its own namespace. @param {TenantNode} node */
function isRoot(node) {
  return node.workload === node.namespace;
}
