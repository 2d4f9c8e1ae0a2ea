import { chip, h, replace } from "./dom.js";
import { count, share } from "./format.js";

const ROW = 40;
const INDENT = 22;
const SPARE_ROWS = 6;
const TYPE_AHEAD_MS = 700;

/**
 * The tree of tenants. Only the rows in sight have elements, so that ten thousand tenants cost as much as thirty. The
 * focus stays on the tree; aria-activedescendant names the current row. Fires `select` with the key of a tenant.
 */
class TenantTreeView extends HTMLElement {
  connectedCallback() {
    this.rows = [];
    this.closed = new Set();
    this.found = null;
    this.quotas = new Map();
    this.current = -1;
    this.selected = "";
    this.drawn = new Map();
    this.typed = { text: "", at: 0 };
    this.spacer = h("div", { class: "spacer", role: "presentation" });
    this.replaceChildren(this.spacer);
    this.setAttribute("role", "tree");
    this.setAttribute("aria-label", "Tenants");
    this.tabIndex = 0;
    this.addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    this.addEventListener("keydown", (event) => this.#onKey(event));
    this.addEventListener("click", (event) => this.#onClick(event));
    new ResizeObserver(() => this.#drawSoon()).observe(this);
  }

  /** @param {import("./tree.js").TenantTree} tree @param {{found: Set<string>, shown: Set<string>}|null} matches */
  show(tree, matches, quotas) {
    const key = this.rows[this.current]?.tenant.key ?? this.selected;
    this.tree = tree;
    this.matches = matches;
    this.quotas = quotas;
    this.rows = tree.rows(this.closed, matches?.shown);
    this.current = this.rows.findIndex((row) => row.tenant.key === key);
    this.spacer.style.height = `${this.rows.length * ROW}px`;
    this.#draw();
  }

  /** Marks a tenant as the one that is shown beside the tree, and opens its ancestors. */
  select(key) {
    this.selected = key;
    const tenant = this.tree?.get(key);
    if (!tenant) return this.#draw();
    for (const each of this.tree.ancestors(tenant)) this.closed.delete(each.key);
    this.show(this.tree, this.matches, this.quotas);
    this.#go(this.rows.findIndex((row) => row.tenant.key === key));
  }

  #toggle(row, open) {
    if (!row.isParent || this.matches) return;
    if (open) this.closed.delete(row.tenant.key);
    else this.closed.add(row.tenant.key);
    this.show(this.tree, this.matches, this.quotas);
  }

  #go(at) {
    if (at < 0 || at >= this.rows.length) return;
    this.current = at;
    const top = at * ROW;
    if (top < this.scrollTop) this.scrollTop = top;
    else if (top + ROW > this.scrollTop + this.clientHeight) this.scrollTop = top + ROW - this.clientHeight;
    this.#draw();
  }

  #choose(row) {
    this.dispatchEvent(new CustomEvent("select", { detail: row.tenant.key }));
  }

  #onClick(event) {
    const element = event.target.closest("[role=treeitem]");
    if (!element) return;
    const at = Number(element.dataset.at);
    const row = this.rows[at];
    this.#go(at);
    if (event.target.closest(".toggle")) this.#toggle(row, !row.isOpen);
    else this.#choose(row);
  }

  #onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = this.rows[this.current];
    const page = Math.max(1, Math.floor(this.clientHeight / ROW) - 1);
    const last = this.rows.length - 1;
    const moves = {
      ArrowDown: () => this.#go(Math.min(last, this.current + 1)),
      ArrowUp: () => this.#go(Math.max(0, this.current - 1)),
      PageDown: () => this.#go(Math.min(last, this.current + page)),
      PageUp: () => this.#go(Math.max(0, this.current - page)),
      Home: () => this.#go(0),
      End: () => this.#go(last),
      ArrowRight: () => row && (row.isParent && !row.isOpen ? this.#toggle(row, true) : row.isOpen && this.#go(this.current + 1)),
      ArrowLeft: () => row && (row.isOpen && !this.matches ? this.#toggle(row, false) : this.#go(this.#parentOf(row))),
      Enter: () => row && this.#choose(row),
      " ": () => row && this.#choose(row),
    };
    if (moves[event.key]) {
      event.preventDefault();
      moves[event.key]();
    } else if (event.key.length === 1) {
      this.#typeAhead(event.key.toLowerCase(), event.timeStamp);
    }
  }

  #parentOf(row) {
    const parent = this.tree.parent(row.tenant);
    return parent ? this.rows.findIndex((each) => each.tenant === parent) : -1;
  }

  /** Goes to the next row whose name begins with the letters that were typed without a pause. */
  #typeAhead(letter, now) {
    const isNew = now - this.typed.at > TYPE_AHEAD_MS;
    this.typed = { text: isNew ? letter : this.typed.text + letter, at: now };
    const start = isNew ? this.current + 1 : Math.max(0, this.current);
    for (let step = 0; step < this.rows.length; step += 1) {
      const at = (start + step) % this.rows.length;
      if (this.rows[at].tenant.name.startsWith(this.typed.text)) return this.#go(at);
    }
  }

  #drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.#draw();
    });
  }

  #draw() {
    const first = Math.max(0, Math.floor(this.scrollTop / ROW) - SPARE_ROWS);
    const end = Math.min(this.rows.length, Math.ceil((this.scrollTop + this.clientHeight) / ROW) + SPARE_ROWS);
    for (const [at, element] of this.drawn) {
      if (at < first || at >= end) {
        element.remove();
        this.drawn.delete(at);
      }
    }
    for (let at = first; at < end; at += 1) {
      let element = this.drawn.get(at);
      if (!element) {
        element = h("div", { role: "treeitem", class: "row", id: `row-${at}`, "data-at": at });
        element.style.transform = `translateY(${at * ROW}px)`;
        this.drawn.set(at, element);
        this.spacer.append(element);
      }
      this.#fill(element, this.rows[at], at);
    }
    const active = this.drawn.get(this.current);
    if (active) this.setAttribute("aria-activedescendant", active.id);
    else this.removeAttribute("aria-activedescendant");
  }

  #fill(element, row, at) {
    const { tenant } = row;
    const usage = this.quotas.get(tenant.workload);
    const state = [
      this.selected === tenant.key, this.current === at, row.isOpen, row.isParent, row.lines.join(), row.last,
      row.position, row.siblings, this.matches?.found.has(tenant.key), usage?.metadata.resourceVersion,
    ].join("|");
    if (element.tenant === tenant && element.state === state) return;
    element.tenant = tenant;
    element.state = state;
    element.classList.toggle("current", this.current === at);
    element.classList.toggle("beside", this.matches !== null && !this.matches?.found.has(tenant.key));
    element.setAttribute("aria-level", row.lines.length + 1);
    element.setAttribute("aria-posinset", row.position);
    element.setAttribute("aria-setsize", row.siblings);
    element.setAttribute("aria-selected", this.selected === tenant.key);
    if (row.isParent) element.setAttribute("aria-expanded", row.isOpen);
    else element.removeAttribute("aria-expanded");
    replace(
      element,
      branches(row),
      h("span", { class: row.isParent ? "toggle" : "leaf", "aria-hidden": "true" }, row.isParent ? (row.isOpen ? "▾" : "▸") : ""),
      h("span", { class: "name" }, tenant.name),
      h("span", { class: "host" }, tenant.host),
      tenant.gateway && h("span", { class: "tag", title: `served by the Gateway in ${tenant.gateway}` }, "gateway"),
      usage && quotaBar(usage),
      readiness(tenant),
    );
  }
}

/** The lines that lead from the ancestors to a row, painted as backgrounds of one element. */
function branches(row) {
  const element = h("span", { class: "branches", "aria-hidden": "true" });
  const depth = row.lines.length;
  element.style.width = `${depth * INDENT}px`;
  const images = [];
  const stroke = (x, y, width, height) => images.push([`${x}px ${y}`, `${width} ${height}`]);
  row.lines.slice(1).forEach((goesOn, level) => goesOn && stroke(level * INDENT + 10, "0", "1px", "100%"));
  if (depth > 0) {
    const x = (depth - 1) * INDENT + 10;
    stroke(x, "0", "1px", row.last ? "50%" : "100%");
    stroke(x, "50%", `${INDENT - 12}px`, "1px");
  }
  element.style.backgroundImage = images.map(() => "linear-gradient(var(--line), var(--line))").join(",");
  element.style.backgroundPosition = images.map(([position]) => position).join(",");
  element.style.backgroundSize = images.map(([, size]) => size).join(",");
  return element;
}

/** The fullest limit of the tenant's quota as a bar. */
function quotaBar(usage) {
  const used = usage.status?.used;
  const limits = Object.entries(usage.status?.hard ?? usage.spec?.hard ?? {}).filter(([key]) => !key.startsWith("requests."));
  if (!used || limits.length === 0) return null;
  const shares = limits.map(([key, hard]) => [share(used[key] ?? "0", hard), key]);
  const [most, key] = shares.reduce((a, b) => (b[0] > a[0] ? b : a));
  const bar = h("span", { class: most > 0.9 ? "fill full" : "fill" });
  bar.style.width = `${Math.round(most * 100)}%`;
  const text = `${key.replace("limits.", "")} ${Math.round(most * 100)} % used`;
  return h("span", { class: "bar", role: "img", "aria-label": text, title: text }, bar);
}

function readiness(tenant) {
  if (tenant.deleting) return chip("Unknown", "Deleting");
  return chip(tenant.ready, tenant.ready === "True" ? "Ready" : tenant.reason || "Progressing");
}

/** The line below the search. */
export function summaryLine(size, matches) {
  return matches ? `${count(matches.found.size, "match").replace("matchs", "matches")} of ${count(size, "tenant")}` : count(size, "tenant");
}

customElements.define("tenant-tree", TenantTreeView);
