import { Reflector, TENANTS, get, keyOf, tenantPath } from "./api.js";
import "./delete-dialog.js";
import { replace } from "./dom.js";
import "./tenant-form.js";
import "./tenant-panel.js";
import { summaryLine } from "./tree-view.js";
import { TenantTree, summary } from "./tree.js";

const element = (id) => document.getElementById(id);
const [view, panel, form, search] = [element("tree"), element("panel"), element("form"), element("search")];
const tree = new TenantTree();
const quotas = new Map();
let session = { user: "", cluster: "", namespace: "" };
let matches = null;
let frame;

/** Draws once for all changes that arrive together. */
function drawSoon() {
  frame ??= requestAnimationFrame(() => {
    frame = undefined;
    const text = search.value.trim();
    matches = text ? tree.matches(text) : null;
    view.show(tree, matches, quotas);
    replace(element("count"), summaryLine(tree.size, matches));
    element("empty").hidden = tree.size > 0 || !loaded;
  });
}

let loaded = false;
const tenants = {
  add(objects) {
    for (const object of objects) {
      const tenant = summary(object);
      tree.set(tenant);
      if (panel.tenant?.key === tenant.key) {
        panel.tenant = tenant;
        panel.refresh();
      }
    }
    drawSoon();
  },
  remove(object) {
    const key = keyOf(object);
    tree.delete(key);
    if (panel.tenant?.key === key) close();
    drawSoon();
  },
  listed(keys) {
    loaded = true;
    for (const key of [...tree.keys()]) if (!keys.has(key)) tree.delete(key);
    performance.mark("tenants-listed");
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (wanted && !panel.tenant) open(wanted);
    drawSoon();
  },
  state(text, error) {
    const shown = { live: "Live", reconnecting: "Reconnecting…", refused: "Not allowed" }[text];
    const place = element("connection");
    place.className = `chip ${text === "live" ? "good" : "bad"}`;
    if (place.textContent !== shown) place.textContent = shown;
    if (text === "refused") refused(error);
  },
};

const usage = {
  add(objects) {
    for (const object of objects) quotas.set(object.metadata.namespace, object);
    drawSoon();
  },
  remove(object) {
    quotas.delete(object.metadata.namespace);
    drawSoon();
  },
  listed() {},
  state() {
    // without rights on ResourceQuotas, the tree has no bars, and the panel says so
  },
};

/** A user who may not list the tenants of all namespaces sees those of the context's namespace. */
function refused(error) {
  if (error.code === 401) return replace(element("problem"), error.message);
  if (error.code === 403 && session.namespace && following.path === `${TENANTS}/tenants`) {
    return follow(tenantPath(session.namespace));
  }
  replace(element("problem"), error.message);
}

let following;

function follow(path) {
  following?.stop();
  following = new Reflector(path, {}, tenants);
  following.run();
}

function open(key) {
  const tenant = tree.get(key);
  if (!tenant) return;
  view.select(key);
  history.replaceState(null, "", `#${encodeURIComponent(key)}`);
  document.body.classList.add("has-panel");
  panel.show(tenant, tree);
}

function close() {
  panel.show(null);
  view.select("");
  history.replaceState(null, "", location.pathname);
  document.body.classList.remove("has-panel");
  view.focus();
}

view.addEventListener("select", (event) => {
  open(event.detail);
  panel.heading?.focus();
});
panel.addEventListener("visit", (event) => open(event.detail));
panel.addEventListener("close", close);
panel.addEventListener("keydown", (event) => event.key === "Escape" && close());
panel.addEventListener("add-child", (event) => form.create(event.detail.workload));
panel.addEventListener("delete", (event) => element("deletion").ask(event.detail, tree.children(event.detail)));
panel.addEventListener("edit", async (event) => {
  const { namespace, name } = event.detail;
  form.edit(await get(tenantPath(namespace, name)));
});
form.addEventListener("saved", (event) => {
  tenants.add([event.detail]);
  requestAnimationFrame(() => open(keyOf(event.detail)));
});
element("new").addEventListener("click", () => form.create(session.namespace || "tenant-root"));
search.addEventListener("input", drawSoon);
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") search.value = "";
  if (event.key === "Enter" || event.key === "ArrowDown") view.focus();
  drawSoon();
});

async function start() {
  const response = await fetch("/session");
  if (!response.ok) return replace(element("problem"), (await response.json()).message);
  session = await response.json();
  replace(element("who"), [session.user, session.cluster].filter(Boolean).join(" at "));
  follow(`${TENANTS}/tenants`);
  new Reflector("/api/v1/resourcequotas", { fieldSelector: "metadata.name=tenant-pool" }, usage).run();
}

start();
