// The tenants as a tree. Pure: nothing here knows the page.

/**
 * @typedef {object} Tenant what the tree shows of one
 * @property {string} key
 * @property {string} name
 * @property {string} namespace the namespace that the Tenant lies in: that of its parent
 * @property {string} workload its own namespace
 * @property {string} host
 * @property {string} gateway the namespace whose Gateway serves it, empty without one
 * @property {string} ready True, False or Unknown
 * @property {string} reason
 * @property {boolean} deleting
 * @property {boolean} hasQuota
 *
 * @typedef {object} Row
 * @property {Tenant} tenant
 * @property {boolean[]} lines for each level of ancestors, whether its line goes on below the row
 * @property {boolean} last whether no sibling follows
 * @property {boolean} isParent
 * @property {boolean} isOpen
 * @property {number} position among its siblings, from 1
 * @property {number} siblings
 */

/** @returns {Tenant} */
export function summary(object) {
  const { metadata, spec = {}, status = {} } = object;
  const ready = (status.conditions ?? []).find((each) => each.type === "Ready");
  return {
    key: `${metadata.namespace}/${metadata.name}`,
    name: metadata.name,
    namespace: metadata.namespace,
    workload: status.namespace ?? "",
    host: status.host?.value ?? "",
    gateway: status.gateway?.namespace ?? "",
    ready: ready?.status ?? "Unknown",
    reason: ready?.reason ?? "",
    deleting: Boolean(metadata.deletionTimestamp),
    hasQuota: Object.keys(spec.resourceQuotas ?? {}).length > 0,
  };
}

export class TenantTree {
  /** @type {Map<string, Tenant>} */
  #tenants = new Map();
  /** @type {Map<string, Tenant>} by its own namespace */
  #owners = new Map();
  /** @type {Map<string, {items: Tenant[], sorted: boolean}>} by the namespace that they lie in */
  #groups = new Map();

  get size() {
    return this.#tenants.size;
  }

  get(key) {
    return this.#tenants.get(key);
  }

  keys() {
    return this.#tenants.keys();
  }

  /** The tenant whose namespace it is. */
  owner(namespace) {
    return this.#owners.get(namespace);
  }

  parent(tenant) {
    return isRoot(tenant) ? undefined : this.#owners.get(tenant.namespace);
  }

  /** From the top to the parent. */
  ancestors(tenant) {
    const found = [];
    for (let each = this.parent(tenant); each && !found.includes(each); each = this.parent(each)) found.unshift(each);
    return found;
  }

  children(tenant) {
    return this.#group(tenant.workload).filter((each) => each !== tenant);
  }

  /** Adds a tenant, or replaces the one with the same key. @param {Tenant} tenant */
  set(tenant) {
    const former = this.#tenants.get(tenant.key);
    if (former) this.#forget(former);
    this.#tenants.set(tenant.key, tenant);
    if (tenant.workload) this.#owners.set(tenant.workload, tenant);
    let group = this.#groups.get(tenant.namespace);
    if (!group) this.#groups.set(tenant.namespace, (group = { items: [], sorted: true }));
    group.items.push(tenant);
    group.sorted = false;
  }

  delete(key) {
    const former = this.#tenants.get(key);
    if (former) this.#forget(former);
  }

  /** The keys whose name, host or namespace has the text, with those of all their ancestors. */
  matches(text) {
    const wanted = text.trim().toLowerCase();
    const [found, shown] = [new Set(), new Set()];
    for (const tenant of this.#tenants.values()) {
      const { name, host, workload } = tenant;
      // a hostname below the domain of a tenant finds the tenant, too
      const below = host !== "" && wanted.endsWith(`.${host}`);
      if (below || name.includes(wanted) || host.includes(wanted) || workload.includes(wanted)) {
        found.add(tenant.key);
        shown.add(tenant.key);
        for (const each of this.ancestors(tenant)) shown.add(each.key);
      }
    }
    return { found, shown };
  }

  /**
   * The rows from top to bottom. With `shown`, only those tenants, and all of them open.
   * @param {Set<string>} closed @param {Set<string>} [shown] @returns {Row[]}
   */
  rows(closed, shown = undefined) {
    /** @type {Row[]} */
    const rows = [];
    const visible = (items) => (shown ? items.filter((each) => shown.has(each.key)) : items);
    const walk = (items, lines) => {
      items.forEach((tenant, at) => {
        const children = visible(this.children(tenant));
        const isOpen = children.length > 0 && (shown !== undefined || !closed.has(tenant.key));
        const last = at === items.length - 1;
        const [position, siblings] = [at + 1, items.length];
        rows.push({ tenant, lines, last, isParent: children.length > 0, isOpen, position, siblings });
        if (isOpen) walk(children, [...lines, !last]);
      });
    };
    walk(visible(this.#tops()), []);
    return rows;
  }

  /** Roots, and tenants whose parent is hidden. */
  #tops() {
    const found = [];
    for (const namespace of [...this.#groups.keys()].sort()) {
      const owner = this.#owners.get(namespace);
      if (owner === undefined) found.push(...this.#group(namespace));
      else if (isRoot(owner)) found.push(owner);
    }
    return found;
  }

  #group(namespace) {
    const group = this.#groups.get(namespace);
    if (!group) return [];
    if (!group.sorted) {
      group.items.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      group.sorted = true;
    }
    return group.items;
  }

  #forget(tenant) {
    this.#tenants.delete(tenant.key);
    if (this.#owners.get(tenant.workload) === tenant) this.#owners.delete(tenant.workload);
    const group = this.#groups.get(tenant.namespace);
    group.items.splice(group.items.indexOf(tenant), 1);
    if (group.items.length === 0) this.#groups.delete(tenant.namespace);
  }
}

/** The root lies in its own namespace. */
function isRoot(tenant) {
  return tenant.workload !== "" && tenant.workload === tenant.namespace;
}
