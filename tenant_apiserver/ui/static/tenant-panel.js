/** <tenant-panel>: all that is known of one tenant. */

import { ApiError } from "./api.js";
import { readDetails } from "./details.js";
import { h, replaceContent } from "./dom.js";
import { plural, statusClass } from "./format.js";
import { EQUAL } from "./quota-keys.js";
import { noSums, quotaRows } from "./quotas.js";
import { missingRights, readRights } from "./rights.js";
import { conditionsOf, domainOf, eventsOf, hostsOf, quotaOf, readinessOf, servicesOf } from "./sections.js";
import { stateOf } from "./tree-row.js";

/** @typedef {import("./store.js").TenantStore} TenantStore */

const AGAIN_MS = 700;
// routes, certificates, Events and the use of quota change without their tenant, and a browser has few connections
const REFRESH_MS = 10_000;

/** Fires `tenant-why`, `tenant-open`, `tenant-new`, `tenant-edit`, `tenant-delete` and `tenant-close`. */
export class TenantPanel extends HTMLElement {
  constructor() {
    super();
    /** @type {TenantStore | undefined} */ this.store = undefined;
    this.readOnly = false;
    this.user = "";
    this.key = "";
    /** @type {import("./details.js").Details | undefined} */ this._details = undefined;
    /** @type {import("./rights.js").Rights | undefined} */ this._rights = undefined;
    /** @type {Map<string, number>} */ this._pages = new Map();
    /** @type {AbortController | undefined} */ this._reading = undefined;
    this._timer = 0;
    this._changed = false;
    this._problem = "";
  }

  connectedCallback() {
    this.clear();
  }

  clear() {
    this.key = "";
    this._details = undefined;
    this._reading?.abort();
    clearTimeout(this._timer);
    this.replaceChildren(h("div", { class: "placeholder" }, h("p", {}, "Choose a tenant to see what it has, and from whom."),
      h("p", { class: "note" }, "Arrow keys move, Enter opens, a letter finds a name, / searches.")));
  }

  /** @param {string} key */
  show(key) {
    if (key !== this.key) {
      this._details = undefined;
      this._rights = undefined;
      this._pages.clear();
      this._problem = "";
    }
    this.key = key;
    this._render();
    this._read();
  }

  /** Takes over a change of the tenant, and reads soon what belongs to it. @param {any} [tenant] as the watch has it */
  update(tenant) {
    if (!this.key) return;
    if (tenant && this._details) this._details = { ...this._details, tenant };
    this._render();
    this._changed = true;
    this._readIn(AGAIN_MS);
  }

  /** Shows what has become known without the tenant's doing. */
  redraw() {
    if (this.key) this._render();
  }

  /** Reads later what belongs to the tenant, and not while nobody looks. @param {number} milliseconds */
  _readIn(milliseconds) {
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => (document.hidden ? this._readIn(REFRESH_MS) : this._read()), milliseconds);
  }

  /** @returns {any} the Tenant, once it has been read */
  get tenant() {
    return this._details?.tenant;
  }

  focusHeading() {
    /** @type {HTMLElement | null} */ (this.querySelector("h2"))?.focus();
  }

  async _read() {
    this._reading?.abort();
    const { signal } = (this._reading = new AbortController());
    const [namespace, name] = this.key.split("/");
    this._changed = false;
    try {
      const details = await readDetails(namespace, name, signal);
      const rights = this.readOnly ? undefined : await readRights(details.tenant, signal);
      if (signal.aborted) return;
      this._details = details;
      this._rights = rights;
      this._problem = "";
      if (details.used) this.store?.putUsed(details.tenant.status?.namespace ?? "", details.used);
    } catch (error) {
      if (signal.aborted) return;
      this._problem = error instanceof ApiError ? error.message : "The server cannot be reached.";
    }
    this._render();
    // what has changed meanwhile may not be in what was read
    this._readIn(this._changed ? AGAIN_MS : REFRESH_MS);
  }

  _render() {
    const node = this.store?.nodes.get(this.key);
    const tenant = this._details?.tenant;
    const actions = this._actions();
    replaceContent(this, this._header(node), this._problem ? h("p", { class: "callout bad", role: "alert" }, this._problem) : null,
      ...(tenant ? [
        readinessOf(tenant, actions), servicesOf(tenant, actions), quotaOf(this._quota(tenant, node), actions),
        hostsOf(this._details?.hosts, actions), domainOf(tenant, actions), conditionsOf(tenant, actions),
        eventsOf(this._details?.events, actions), this._access(actions),
      ] : []));
    this.setAttribute("aria-busy", String(!tenant && !this._problem));
  }

  /** @param {import("./store.js").TenantNode | undefined} node */
  _header(node) {
    const [namespace, name] = this.key.split("/");
    const children = node ? (this.store?.children(node).length ?? 0) : 0;
    return h("div", { class: "summary" },
      h("div", { class: "title" }, this._trail(node, namespace),
        h("button", { type: "button", class: "icon close", "data-focus": "close", "aria-label": "Close the details", onclick: () => this._fire("tenant-close", {}) })),
      h("div", { class: "title" }, h("h2", { tabIndex: -1, "data-focus": "heading" }, name),
        node && h("span", { class: `chip ${node.terminating ? "unsure" : statusClass(node.ready)}` }, stateOf(node)),
        children > 0 && h("span", { class: "note" }, plural(children, "child", "children"))),
      ...this._changes());
  }

  /** The buttons for what the user may do, and a sentence about the rest. */
  _changes() {
    const rights = this._rights;
    if (!rights) return [];
    const button = (/** @type {string} */ text, /** @type {string} */ event, style = "") => h("button", { type: "button", class: style, "data-focus": event, onclick: () => this._fire(event, { key: this.key }) }, text);
    const missing = missingRights(rights);
    return [
      h("div", { class: "buttons" }, rights.edit && button("Edit", "tenant-edit"), rights.add && button("New child", "tenant-new"), rights.delete && button("Delete", "tenant-delete", "danger")),
      missing ? h("p", { class: "note" }, missing) : null,
    ];
  }

  /** The tenants above it. @param {import("./store.js").TenantNode | undefined} node @param {string} namespace */
  _trail(node, namespace) {
    const above = [];
    for (let at = node && this.store?.parent(node); at; at = this.store?.parent(at)) above.unshift(at);
    if (!above.length) return h("p", { class: "trail" }, `in ${namespace}`);
    const links = above.slice(-4).flatMap((each) => [h("button", { type: "button", class: "link", "data-focus": `trail ${each.key}`, onclick: () => this._fire("tenant-open", { key: each.key }) }, each.name), " › "]);
    return h("nav", { class: "trail", "aria-label": "Tenants above" }, above.length > 4 ? "… › " : null, ...links);
  }

  /** @param {import("./sections.js").Actions} actions */
  _access(actions) {
    const ask = (/** @type {string} */ text, /** @type {string} */ about) => h("button", { type: "button", "data-focus": about, onclick: () => actions.why(about, "", text) }, text);
    return h("section", {}, h("h3", {}, "Access"), h("div", { class: "buttons" }, ask("Who can see it?", "who-can-see"), this.user && ask("What may I do?", `user/${this.user}`)));
  }

  /** @param {any} tenant @param {import("./store.js").TenantNode | undefined} node */
  _quota(tenant, node) {
    return node && this.store ? this.store.quota(node) : quotaRows(tenant.spec?.resourceQuotas, noSums(), EQUAL);
  }

  /** @returns {import("./sections.js").Actions} */
  _actions() {
    return {
      why: (about, field, title) => this._fire("tenant-why", { key: this.key, about, field, title }),
      openWorkload: (workload) => {
        const found = this.store?.owner(workload);
        if (found) this._fire("tenant-open", { key: found.key });
      },
      nameOf: (workload) => this.store?.owner(workload)?.name ?? workload,
      pageOf: (section) => this._pages.get(section) ?? 0,
      turn: (section, page) => {
        this._pages.set(section, page);
        this._render();
      },
    };
  }

  /** @param {string} type @param {unknown} detail */
  _fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }));
  }
}

customElements.define("tenant-panel", TenantPanel);
