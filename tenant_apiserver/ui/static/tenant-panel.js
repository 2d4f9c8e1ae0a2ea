import { get, tenantPath } from "./api.js";
import { chip, h, replace, uniqueId } from "./dom.js";
import { explain } from "./explanation.js";
import { age, daysLeft, share } from "./format.js";

const SERVICES = ["etcd", "monitoring", "ingress", "seaweedfs"];
const ROUTES = ["httproutes", "grpcroutes", "tlsroutes"];
const GATEWAYS = "/apis/gateway.networking.k8s.io/v1";
const CERTIFICATES = "/apis/cert-manager.io/v1";
const MOST_EVENTS = 20;

/**
 * One tenant: its state, what it has and from whom, its quota, hostnames and events. Fires `edit`, `add-child`,
 * `delete` and `close`, and `visit` with the key of another tenant.
 */
class TenantPanel extends HTMLElement {
  connectedCallback() {
    this.setAttribute("aria-label", "Tenant");
    this.setAttribute("role", "region");
  }

  /** Shows a tenant; null closes the panel. @param {import("./tree.js").Tenant|null} tenant */
  async show(tenant, tree) {
    this.abort?.abort();
    this.hidden = tenant === null;
    this.tenant = tenant;
    this.tree = tree;
    if (tenant === null) return;
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.#frame(tenant);
    await this.refresh();
    if (signal.aborted) return;
    await Promise.all([this.#quota(signal), this.#hostnames(signal), this.#events(signal)]);
  }

  /** Reads the tenant again, as its state has changed. */
  async refresh() {
    const { tenant, abort } = this;
    if (!tenant) return;
    try {
      const object = await get(tenantPath(tenant.namespace, tenant.name), {}, abort.signal);
      if (abort.signal.aborted) return;
      this.object = object;
      this.#state(object);
    } catch (error) {
      if (!abort.signal.aborted) replace(this.parts.state, problem(error));
    }
  }

  #frame(tenant) {
    const fire = (type) => () => this.dispatchEvent(new CustomEvent(type, { detail: tenant }));
    const section = () => h("section");
    this.parts = { state: section(), quota: section(), hostnames: section(), events: section() };
    this.answer = h("div", { class: "answer", "aria-live": "polite" });
    this.heading = h("h2", { tabindex: "-1" }, tenant.name);
    replace(
      this,
      h(
        "header",
        {},
        h("nav", { "aria-label": "Ancestors" }, ...this.tree.ancestors(tenant).map((each) => this.#link(each))),
        h("button", { class: "plain close", "aria-label": "Close", onclick: fire("close") }, "×"),
        this.heading,
        h(
          "div",
          { class: "actions" },
          h("button", { onclick: fire("edit") }, "Edit"),
          h("button", { onclick: fire("add-child") }, "New child"),
          h("button", { class: "danger", onclick: fire("delete") }, "Delete"),
        ),
      ),
      this.parts.state,
      this.#questions(),
      this.parts.quota,
      this.parts.hostnames,
      this.parts.events,
    );
  }

  #link(tenant) {
    const open = () => this.dispatchEvent(new CustomEvent("visit", { detail: tenant.key }));
    return h("button", { class: "plain", onclick: open }, tenant.name);
  }

  #state({ metadata, spec, status = {} }) {
    const conditions = status.conditions ?? [];
    const ready = conditions.find((each) => each.type === "Ready");
    const inherited = (value, provider) => {
      if (!provider) return "none";
      return provider === status.namespace ? `${value}its own` : `${value}from ${provider}`;
    };
    const facts = [
      ["Namespace", status.namespace ?? "not yet"],
      ["Domain", status.host?.value ? `${status.host.value}${spec.host ? "" : ", from its parent"}` : "none"],
      ["Gateway", inherited("", status.gateway?.namespace)],
      ...SERVICES.map((name) => [name, inherited("", status.services?.[name])]),
      ["Age", age(metadata.creationTimestamp)],
    ];
    replace(
      this.parts.state,
      h(
        "p",
        { class: "lead" },
        chip(ready?.status ?? "Unknown", ready?.status === "True" ? "Ready" : (ready?.reason ?? "Progressing")),
        " ",
        ready?.message ?? "no controller has looked at it yet",
      ),
      h("h3", {}, "What it has"),
      h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      h("h3", {}, "Conditions"),
      conditions.length === 0 && h("p", { class: "quiet" }, "None yet."),
      h("ul", { class: "conditions" }, ...conditions.filter((each) => each.type !== "Ready").map(condition)),
    );
  }

  /** The questions that explain answers, each by one button or one field. */
  #questions() {
    const ask = (about) => () => this.#ask(about);
    const id = uniqueId("host");
    const field = h("input", { id, type: "text", placeholder: `shop.${this.tenant.host || "example.org"}`, spellcheck: "false" });
    const submit = (event) => {
      event.preventDefault();
      if (field.value.trim()) this.#ask(`host/${field.value.trim()}`);
    };
    return h(
      "section",
      {},
      h("h3", {}, "Why?"),
      h(
        "div",
        { class: "actions" },
        h("button", { onclick: ask("tenant") }, "Why is it so?"),
        h("button", { onclick: ask("who-can-see") }, "Who can see it?"),
      ),
      h("form", { class: "ask", onsubmit: submit }, h("label", { for: id }, "A hostname"), field, h("button", {}, "Why?")),
      this.answer,
    );
  }

  #ask(about) {
    this.question?.abort();
    this.question = new AbortController();
    return explain(this.answer, this.tenant, about, this.question.signal).then(() => this.answer.scrollIntoView({ block: "nearest" }));
  }

  async #quota(signal) {
    const place = this.parts.quota;
    const declared = Object.entries(this.object?.spec?.resourceQuotas ?? {});
    if (declared.length === 0 && !this.tenant.workload) return;
    const found = await readable(`/api/v1/namespaces/${this.tenant.workload}/resourcequotas`, signal);
    const pool = found.items.find((each) => each.metadata.name === "tenant-pool");
    const own = found.items.find((each) => each.metadata.name === "tenant-quota");
    const hard = Object.entries((pool ?? own)?.spec?.hard ?? {});
    const used = (pool ?? own)?.status?.used ?? {};
    if (signal.aborted) return;
    replace(
      place,
      h("h3", {}, "Quota"),
      declared.length > 0 && h("p", { class: "quiet" }, `Declared: ${declared.map(([key, value]) => `${key} ${value}`).join(", ")}`),
      found.refused && h("p", { class: "quiet" }, found.refused),
      !found.refused && hard.length === 0 && h("p", { class: "quiet" }, "No limit binds this tenant."),
      h("ul", { class: "bars" }, ...hard.map(([key, limit]) => meter(key, used[key], limit))),
    );
  }

  async #hostnames(signal) {
    const { workload } = this.tenant;
    const [certificates, ...routes] = await Promise.all([
      readable(`${CERTIFICATES}/namespaces/${workload}/certificates`, signal),
      ...ROUTES.map((kind) => readable(`${GATEWAYS}/namespaces/${workload}/${kind}`, signal)),
    ]);
    if (signal.aborted) return;
    const rows = routes
      .flatMap((each) => each.items)
      .flatMap((route) => (route.spec.hostnames ?? []).map((host) => [host, route]));
    const refused = routes.find((each) => each.refused)?.refused;
    replace(
      this.parts.hostnames,
      h("h3", {}, "Hostnames"),
      refused && h("p", { class: "quiet" }, refused),
      !refused && rows.length === 0 && h("p", { class: "quiet" }, `No route in ${workload} has a hostname.`),
      h("ul", { class: "hosts" }, ...rows.map(([host, route]) => this.#hostname(host, route, certificates.items))),
    );
  }

  #hostname(host, route, certificates) {
    const certificate = certificates.find((each) => each.spec.dnsNames?.some((name) => covers(name, host)));
    const days = daysLeft(certificate?.status?.notAfter);
    const isExpiring = days !== null && days < 14;
    return h(
      "li",
      {},
      h("span", { class: "host" }, host),
      chip(acceptance(route)),
      days !== null && h("span", { class: isExpiring ? "tag warn" : "tag" }, days < 0 ? "certificate has ended" : `${days} d left`),
      h("button", { class: "plain", "aria-label": `Why is ${host} so?`, onclick: () => this.#ask(`host/${host}`) }, "Why?"),
    );
  }

  async #events(signal) {
    const { namespace, name } = this.tenant;
    const fieldSelector = `involvedObject.kind=Tenant,involvedObject.name=${name}`;
    const found = await readable(`/api/v1/namespaces/${namespace}/events`, signal, { fieldSelector });
    if (signal.aborted) return;
    const time = (each) => each.lastTimestamp ?? each.eventTime ?? each.metadata.creationTimestamp;
    const newest = found.items.sort((a, b) => Date.parse(time(b)) - Date.parse(time(a))).slice(0, MOST_EVENTS);
    replace(
      this.parts.events,
      h("h3", {}, "Events"),
      found.refused && h("p", { class: "quiet" }, found.refused),
      !found.refused && newest.length === 0 && h("p", { class: "quiet" }, "None in the last hour."),
      h(
        "ul",
        { class: "events" },
        ...newest.map((each) =>
          h(
            "li",
            { class: each.type === "Warning" ? "warning" : null },
            h("span", { class: "quiet" }, age(time(each))),
            h("strong", {}, each.reason),
            h("span", {}, each.message),
          ),
        ),
      ),
    );
  }
}

/** A list, or why it cannot be read: without rights or without the kind, the rest of the panel is shown all the same. */
async function readable(path, signal, query = {}) {
  try {
    return { items: (await get(path, { ...query, limit: "500" }, signal)).items ?? [], refused: "" };
  } catch (error) {
    return { items: [], refused: error.code === 404 ? "" : error.message };
  }
}

function condition({ type, status, reason, message }) {
  return h("li", {}, h("div", {}, h("strong", {}, type), " ", chip(status, status === "True" ? reason : `${reason}`)), h("p", {}, message));
}

function meter(key, used, limit) {
  const id = uniqueId("limit");
  const part = used === undefined ? 0 : share(used, limit);
  const fill = h("span", { class: part > 0.9 ? "fill full" : "fill" });
  fill.style.width = `${Math.round(part * 100)}%`;
  return h(
    "li",
    {},
    h("span", { id }, key),
    h("span", { class: "quiet" }, used === undefined ? `limit ${limit}, not counted` : `${used} of ${limit}`),
    h("span", { class: "bar", role: "img", "aria-labelledby": id }, fill),
  );
}

function acceptance(route) {
  const conditions = (route.status?.parents ?? []).flatMap((each) => each.conditions ?? []);
  const accepted = conditions.filter((each) => each.type === "Accepted");
  if (accepted.length === 0) return "Unknown";
  return accepted.every((each) => each.status === "True") ? "True" : "False";
}

function covers(name, host) {
  return name === host || (name.startsWith("*.") && host.slice(host.indexOf(".") + 1) === name.slice(2));
}

function problem(error) {
  return h("p", { class: "problem", role: "alert" }, error.message);
}

customElements.define("tenant-panel", TenantPanel);
