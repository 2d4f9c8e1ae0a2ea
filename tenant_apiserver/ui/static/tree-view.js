/** <tenant-tree>: the tree of all tenants, of which only the rows on the screen are elements. */

import { h } from "./dom.js";
import { TenantStore } from "./store.js";
import { stepOf, typeAhead } from "./tree-keys.js";
import { newRow, showRow } from "./tree-row.js";

/** @typedef {import("./store.js").Row} Row */

const ROW_HEIGHT = 36;
const OVERSCAN = 5;
const NARROW_PX = 480;
const LEAST_BETWEEN_MS = 100;
const TYPING_MS = 700;

/** Fires `tenant-open` with {key, byKeyboard} when the user opens a tenant. */
export class TenantTree extends HTMLElement {
  constructor() {
    super();
    this.store = new TenantStore();
    /** @type {import("./store.js").Filter} */ this.filter = { text: "", state: "all" };
    /** @type {Map<string, number>} the times of changes, by key */ this.changes = new Map();
    /** @type {Set<string>} */ this._collapsed = new Set();
    /** @type {Row[]} */ this._rows = [];
    /** @type {Map<number, any>} */ this._shown = new Map();
    this._active = 0;
    this._activeKey = "";
    this._selected = "";
    this._refreshed = -LEAST_BETWEEN_MS;
    this._scheduled = false;
    this._typed = { text: "", at: 0 };
  }

  connectedCallback() {
    this._tree = h("div", { role: "tree", "aria-label": "Tenants", class: "rows" });
    this._empty = h("p", { class: "empty", hidden: true });
    this._scroller = h("div", { class: "scroller" }, this._tree, this._empty);
    const heads = ["Tenant", "Domain", "Quota", "State"].map((text) => h("span", {}, text));
    this.replaceChildren(h("div", { class: "head", "aria-hidden": "true" }, ...heads), this._scroller);
    this._scroller.addEventListener("scroll", () => this._draw(), { passive: true });
    this._tree.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this._onKey(event));
    this._tree.addEventListener("click", (/** @type {MouseEvent} */ event) => this._onClick(event));
    new ResizeObserver(() => this.redraw()).observe(this._scroller);
  }

  /** The number of rows, seen or not. */
  get rowCount() {
    return this._rows.length;
  }

  /** Draws soon what has changed, and many changes at once. */
  refresh() {
    if (this._scheduled) return;
    this._scheduled = true;
    const wait = this._refreshed + LEAST_BETWEEN_MS - performance.now();
    setTimeout(() => requestAnimationFrame(() => { this._scheduled = false; this.redraw(); }), Math.max(0, wait));
  }

  redraw() {
    this._refreshed = performance.now();
    this._rows = this.store.rows(this._collapsed, this.filter);
    const found = this._rows[this._active]?.node.key === this._activeKey
      ? this._active : this._rows.findIndex((row) => row.node.key === this._activeKey);
    this._active = found >= 0 ? found : Math.max(0, Math.min(this._active, this._rows.length - 1));
    this._activeKey = this._rows[this._active]?.node.key ?? "";
    this._tree.style.height = `${this._rows.length * ROW_HEIGHT}px`;
    this._tree.hidden = !this._rows.length;
    this._draw(true);
  }

  /** The text in place of the tree while it has no rows. @param {string} text */
  showEmpty(text) {
    this._empty.textContent = text;
    this._empty.hidden = this._rows.length > 0 || !text;
  }

  /** Marks a tenant, and scrolls to it. @param {string} key @param {{focus?: boolean}} [options] */
  select(key, { focus = false } = {}) {
    this._selected = key;
    const node = this.store.nodes.get(key);
    for (let at = node && this.store.parent(node); at; at = this.store.parent(at)) this._collapsed.delete(at.key);
    if (node) this._activeKey = key;
    this.redraw();
    if (node && this._activeKey === key) this._goTo(this._active, focus);
  }

  /** Goes to what the search has found, and not to a row that is only shown as the way there. */
  focusFound() {
    const index = this._rows[this._active]?.matches ? this._active : this._rows.findIndex((row) => row.matches);
    if (index >= 0) this._goTo(index);
  }

  /** The element that has the focus when one enters the tree. @returns {HTMLElement | null} */
  get activeRow() {
    return this._shown.get(this._active) ?? null;
  }

  /** @param {boolean} [changed] true if rows may differ from those that are shown */
  _draw(changed = false) {
    const hadFocus = this._tree.contains(document.activeElement);
    const first = Math.max(0, Math.floor(this._scroller.scrollTop / ROW_HEIGHT) - OVERSCAN);
    const last = Math.min(this._rows.length - 1, Math.ceil((this._scroller.scrollTop + this._scroller.clientHeight) / ROW_HEIGHT) + OVERSCAN);
    const wanted = new Set();
    for (let index = first; index <= last; index += 1) wanted.add(index);
    // the active row stays, so that the focus does
    if (this._rows.length) wanted.add(this._active);
    const free = this._release(wanted, changed);
    const indent = this.clientWidth < NARROW_PX ? 14 : 22;
    let cursor = this._tree.firstElementChild;
    for (const index of [...wanted].sort((a, b) => a - b)) {
      const known = this._shown.get(index);
      const element = known ?? free.pop() ?? newRow();
      if (!known || changed) this._show(element, index, indent);
      if (element === cursor) cursor = cursor.nextElementSibling;
      else this._tree.insertBefore(element, cursor);
    }
    if (hadFocus && document.activeElement !== this.activeRow) this.activeRow?.focus({ preventScroll: true });
  }

  /** The elements that are no longer wanted. @param {Set<number>} wanted @param {boolean} changed */
  _release(wanted, changed) {
    const free = [];
    /** @type {Map<number, any>} */ const kept = new Map();
    const byKey = changed ? new Map([...wanted].map((index) => [this._rows[index].node.key, index])) : undefined;
    for (const [index, element] of this._shown) {
      const now = byKey ? byKey.get(element.dataset.key) : wanted.has(index) ? index : undefined;
      if (now === undefined) {
        element.remove();
        free.push(element);
      } else kept.set(now, element);
    }
    this._shown = kept;
    return free;
  }

  /** @param {any} element @param {number} index @param {number} indent */
  _show(element, index, indent) {
    const row = this._rows[index];
    const { key } = row.node;
    showRow(element, row, this.store.tightest(row.node), { indent, selected: key === this._selected, changedAt: this.changes.get(key) });
    element.style.transform = `translateY(${index * ROW_HEIGHT}px)`;
    element.tabIndex = index === this._active ? 0 : -1;
    this._shown.set(index, element);
  }

  /** Makes a row the active one. @param {number} index @param {boolean} [focus] */
  _goTo(index, focus = true) {
    const { scrollTop, clientHeight } = this._scroller;
    const top = index * ROW_HEIGHT;
    if (top < scrollTop) this._scroller.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight) this._scroller.scrollTop = top + ROW_HEIGHT - clientHeight;
    const before = this.activeRow;
    this._active = index;
    this._activeKey = this._rows[index].node.key;
    this._draw();
    if (before) before.tabIndex = -1;
    if (this.activeRow) this.activeRow.tabIndex = 0;
    if (focus) this.activeRow?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  _onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this._scroller.clientHeight / ROW_HEIGHT) - 1);
    const step = stepOf(event.key, this._rows, this._active, page);
    if (step) {
      event.preventDefault();
      this._take(step);
    } else if (/^[a-z0-9-]$/.test(event.key)) this._typeAhead(event.key);
  }

  /** @param {import("./tree-keys.js").Step} step */
  _take({ move, expand, expandSiblings, open }) {
    const row = this._rows[this._active];
    if (move !== undefined) this._goTo(move);
    if (expand !== undefined) this._expand([row], expand);
    if (expandSiblings) {
      const parent = this.store.parent(row.node);
      this._expand(this._rows.filter((each) => each.level === row.level && this.store.parent(each.node) === parent), true);
    }
    if (open) this._open(row.node.key, true);
  }

  /** @param {string} letter */
  _typeAhead(letter) {
    const now = performance.now();
    const text = now - this._typed.at < TYPING_MS ? this._typed.text + letter : letter;
    this._typed = { text, at: now };
    const index = typeAhead(this._rows, this._active, text);
    if (index >= 0) this._goTo(index);
  }

  /** @param {MouseEvent} event */
  _onClick(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const element = /** @type {HTMLElement | null} */ (target.closest("[role=treeitem]"));
    const index = this._rows.findIndex((row) => row.node.key === element?.dataset.key);
    if (index < 0) return;
    this._goTo(index);
    const row = this._rows[index];
    if (target.classList.contains("twisty") && row.hasChildren) this._expand([row], !row.expanded);
    else this._open(row.node.key, false);
  }

  /** @param {Row[]} rows @param {boolean} expanded */
  _expand(rows, expanded) {
    for (const { node } of rows) {
      if (expanded) this._collapsed.delete(node.key);
      else this._collapsed.add(node.key);
    }
    this.redraw();
  }

  /** @param {string} key @param {boolean} byKeyboard */
  _open(key, byKeyboard) {
    this.dispatchEvent(new CustomEvent("tenant-open", { detail: { key, byKeyboard }, bubbles: true }));
  }
}

customElements.define("tenant-tree", TenantTree);
