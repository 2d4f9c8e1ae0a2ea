/** The page: connects the tree, the panel and the dialogs with the API. */

import { ApiError, get, tenantPath } from "./api.js";
import { openDeleteDialog } from "./delete-dialog.js";
import { readAllUsed, readRatios } from "./details.js";
import { announce, h } from "./dom.js";
import { openExplanation } from "./explain-panel.js";
import { Follower } from "./follower.js";
import { plural } from "./format.js";
import { findParent } from "./rights.js";
import { keyOf, TenantStore } from "./store.js";
import { openTenantForm } from "./tenant-form.js";
import { TenantPanel } from "./tenant-panel.js";
import { TenantTree } from "./tree-view.js";

const HIDDEN_MS = 20_000;
const CREATION_PAUSE_MS = 3_000;
const ROOT = "tenant-root";
const CONNECTIONS = { loading: ["Loading", "unsure"], live: ["Live", "good"], reconnecting: ["Reconnecting…", "bad"] };

const element = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const store = new TenantStore();
const tree = /** @type {TenantTree} */ (document.querySelector("tenant-tree"));
const panel = /** @type {TenantPanel} */ (document.querySelector("tenant-panel"));
/** @type {Set<string>} keys that the list has had so far */
let listed = new Set();
let session = { user: "", cluster: "", namespace: "", readOnly: false, version: "" };
let problem = "";
let isOfOneNamespace = false;
let isCreationPaused = false;
let isCreationDue = false;

/** @type {import("./follower.js").Handlers} */
const handlers = {
  onPage(items) {
    for (const tenant of items) listed.add(store.put(tenant).key);
    showChange();
  },
  onListed() {
    store.retain(listed);
    listed = new Set();
    performance.mark("tenants-listed");
    showChange();
    if (panel.key) panel.update();
    readUse();
    readAllocationRatios();
    offerCreation();
  },
  onEvent(type, tenant) {
    const key = keyOf(tenant);
    const isNew = !store.nodes.has(key);
    if (type === "DELETED") store.remove(key);
    else store.put(tenant);
    if (type !== "DELETED") tree.changes.set(key, performance.now());
    if (isNew && element("create").hidden) offerCreation();
    if (isNew) announce(`Tenant ${key} was created`);
    else if (type === "DELETED") announce(`Tenant ${key} was deleted`);
    if (key === panel.key) type === "DELETED" ? close() : panel.update(tenant);
    showChange();
  },
  onState: showConnection,
};
let follower = new Follower(tenantPath(), {}, handlers);

/** @param {"loading" | "live" | "reconnecting"} state @param {Error} [error] */
function showConnection(state, error) {
  const [text, style] = CONNECTIONS[state];
  const place = element("connection");
  problem = "";
  if (error instanceof ApiError && error.code === 403 && session.namespace && !isOfOneNamespace) {
    // a user who may not list the tenants of all namespaces sees those of the context's
    isOfOneNamespace = true;
    follower.stop();
    follower = new Follower(tenantPath(session.namespace), {}, handlers);
    follower.start();
    return;
  }
  if (error instanceof ApiError && error.code === 401) problem = "The session has ended: open the URL that the server prints when it starts.";
  else if (error instanceof ApiError && error.code === 403) problem = `You may not list tenants: ${error.message}`;
  else if (error instanceof ApiError) problem = error.message;
  place.textContent = text;
  place.className = style;
  place.title = problem || error?.message || "";
  showChange();
}

function showChange() {
  tree.refresh();
  element("count-all").textContent = store.size.toLocaleString("en");
  element("count-ready").textContent = store.readyCount.toLocaleString("en");
  element("count-notready").textContent = (store.size - store.readyCount).toLocaleString("en");
  requestAnimationFrame(showEmpty);
}

function showEmpty() {
  const filtered = tree.filter.text || tree.filter.state !== "all";
  const loading = element("connection").textContent !== CONNECTIONS.live[0];
  tree.showEmpty(problem || (loading && !store.size ? "Loading the tenants…" : filtered && store.size ? "No tenant matches." : store.size ? ""
    : `No tenant that you may see yet. ${element("create").hidden ? "Ask who may see it." : "Create one with New tenant, or ask who may see it."}`));
}

/** The use of namespaces is not watched: a browser has few connections. */
async function readUse() {
  try {
    const found = await readAllUsed(AbortSignal.timeout(30_000));
    for (const [workload, used] of found) store.putUsed(workload, used);
    if (found.size) tree.refresh();
  } catch { /* the bars show what children declare */ }
}

/** Once for each list, of any tenant. */
async function readAllocationRatios() {
  const [node] = store.nodes.values();
  if (!node) return;
  try {
    store.putRatios(await readRatios(node.namespace, node.name, AbortSignal.timeout(30_000)));
    tree.refresh();
    panel.redraw();
  } catch { /* quotas are compared as if requests were as large as limits */ }
}

/** @param {string} key @param {{focus?: "panel" | "tree"}} [options] */
function open(key, { focus } = {}) {
  document.body.classList.add("opened");
  tree.select(key, { focus: focus === "tree" });
  panel.show(key);
  if (location.hash !== `#/${key}`) history.pushState(null, "", `#/${key}`);
  document.title = `${key.split("/")[1]} · Tenants`;
  if (focus === "panel") panel.focusHeading();
}

function close() {
  document.body.classList.remove("opened");
  panel.clear();
  if (location.hash) history.pushState(null, "", location.pathname);
  document.title = "Tenants";
  tree.select("");
  tree.activeRow?.focus({ preventScroll: true });
}

/** The `namespace/name` of the location, empty for one that is none. */
function keyOfLocation() {
  try {
    return decodeURIComponent(location.hash.slice(2));
  } catch {
    return "";
  }
}

function followLocation() {
  const key = keyOfLocation();
  if (/^[^/]+\/[^/]+$/.test(key)) open(key);
  else if (panel.key) close();
}

const isNarrow = () => matchMedia("(max-width: 860px)").matches;
const returnTo = () => tree.activeRow;

/** @param {string} namespace @param {string} parent @param {any} [tenant] */
function openForm(namespace, parent, tenant) {
  openTenantForm({ namespace, parent, tenant, returnTo, onDone: (saved, warnings) => {
    store.put(saved);
    showChange();
    open(keyOf(saved));
    toast(`${tenant ? "Saved" : "Created"} ${keyOf(saved)}`, warnings);
  } });
}

/** Those below which a new tenant may lie, the likeliest first. @returns {Iterable<import("./rights.js").Parent>} */
function* possibleParents() {
  const { namespace } = session;
  for (const each of [store.nodes.get(panel.key), store.owner(namespace), store.owner(ROOT)]) if (each) yield each;
  yield* store.tops();
  yield* store.nodes.values();
  if (!store.size) yield { workload: namespace, name: namespace };
}

/** Shows "New tenant" to those alone who may create one. It costs up to twenty reviews, so there is a pause after each. */
async function offerCreation() {
  isCreationDue = isCreationPaused;
  if (isCreationPaused) return;
  isCreationPaused = true;
  setTimeout(() => {
    isCreationPaused = false;
    if (isCreationDue && element("create").hidden) offerCreation();
  }, CREATION_PAUSE_MS);
  const parent = session.readOnly ? undefined : await findParent(possibleParents()).catch(() => undefined);
  element("create").hidden = !parent;
  element("no-create").hidden = Boolean(parent) || session.readOnly;
  showEmpty();
}

/** @param {string} text @param {string[]} [warnings] */
function toast(text, warnings = []) {
  document.querySelector(".toast")?.remove();
  const shown = h("div", { class: "toast" }, h("p", {}, text), ...warnings.map((each) => h("p", { class: "note" }, each)));
  document.body.append(shown);
  announce([text, ...warnings].join(". "));
  setTimeout(() => shown.remove(), warnings.length ? 12_000 : 5_000);
}

function listenToPanel() {
  panel.addEventListener("tenant-why", (/** @type {any} */ { detail: { key, about, field, title } }) => {
    const [namespace, name] = key.split("/");
    openExplanation({ namespace, name, about, field, title, returnTo });
  });
  panel.addEventListener("tenant-new", () => {
    const node = store.nodes.get(panel.key);
    if (node) openForm(node.workload, node.name);
  });
  panel.addEventListener("tenant-edit", () => {
    const node = store.nodes.get(panel.key);
    if (node && panel.tenant) openForm(node.namespace, store.parent(node)?.name ?? "", panel.tenant);
  });
  panel.addEventListener("tenant-delete", () => {
    const node = store.nodes.get(panel.key);
    const children = () => (node && store.nodes.get(node.key) === node ? store.children(node) : []);
    if (node && panel.tenant) openDeleteDialog({ tenant: panel.tenant, children, returnTo, onDone: () => toast(`Deleting ${node.key}`) });
  });
  panel.addEventListener("tenant-close", close);
}

function listenToList() {
  document.addEventListener("tenant-open", (/** @type {any} */ { detail, target }) => {
    const fromPanel = target === panel;
    open(detail.key, { focus: fromPanel || detail.byKeyboard || isNarrow() ? "panel" : "tree" });
  });
  element("create").addEventListener("click", async () => {
    const parent = await findParent(possibleParents()).catch(() => undefined);
    if (parent) openForm(parent.workload, parent.name);
    else toast("You may not create a tenant below any that you see, or the server cannot be reached.");
  });
  const search = element("search");
  search.addEventListener("input", () => filterBy({ text: search.value }));
  search.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      tree.redraw();
      tree.focusFound();
    }
  });
  for (const button of document.querySelectorAll("[data-state]")) {
    button.addEventListener("click", () => {
      for (const each of document.querySelectorAll("[data-state]")) each.setAttribute("aria-pressed", String(each === button));
      filterBy({ state: /** @type {any} */ (button.getAttribute("data-state")) });
    });
  }
}

let told = 0;

/** @param {Partial<import("./store.js").Filter>} change */
function filterBy(change) {
  tree.filter = { ...tree.filter, ...change };
  tree.redraw();
  showEmpty();
  showHint();
  clearTimeout(told);
  told = window.setTimeout(() => announce(tree.rowCount ? `${plural(tree.rowCount, "row")} in the tree` : "No tenant matches"), 600);
}

/** For a hostname, the tenant whose domain it is in, and why it is served or not. */
function showHint() {
  const text = tree.filter.text.trim().toLowerCase();
  const owner = /^[a-z0-9*-]+(\.[a-z0-9-]+)+$/.test(text) ? store.ownerOfHost(text) : undefined;
  const hint = element("hint");
  hint.hidden = !owner;
  if (!owner) return;
  hint.replaceChildren(h("span", {}, `${text} is in the domain of ${owner.name}. `), h("button", { type: "button", class: "link", onclick: () =>
    openExplanation({ namespace: owner.namespace, name: owner.name, about: `host/${text}`, field: "", title: text }) }, "Why is it served, or not?"));
}

function listenToDocument() {
  document.addEventListener("keydown", (event) => {
    const typing = /** @type {HTMLElement} */ (event.target).closest?.("input, dialog");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      element("search").focus();
    } else if (event.key === "Escape" && !typing && panel.key) close();
  });
  let timer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    // a hidden page leaves its connection to others
    if (document.hidden) timer = window.setTimeout(() => follower.stop(), HIDDEN_MS);
    else follower.start();
  });
  window.addEventListener("popstate", followLocation);
  // a page that the browser keeps for the way back would keep its connection for a minute, too
  window.addEventListener("pagehide", () => follower.stop());
  window.addEventListener("pageshow", (event) => event.persisted && follower.start());
}

async function begin() {
  tree.store = store;
  panel.store = store;
  listenToPanel();
  listenToList();
  listenToDocument();
  try {
    session = { ...session, ...await get("/session") };
  } catch { /* the tree tells that there is no session */ }
  follower.start();
  panel.user = session.user;
  panel.readOnly = session.readOnly;
  element("identity").textContent = [session.user, session.cluster].filter(Boolean).join(" at ");
  followLocation();
}

begin();
