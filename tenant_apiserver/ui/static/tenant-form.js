import { ApiError, send, tenantPath } from "./api.js";
import { h, replace, uniqueId } from "./dom.js";

const PAUSE_MS = 300;
const FLAGS = [
  ["gateway", "A Gateway of its own"],
  ["etcd", "etcd of its own"],
  ["monitoring", "Monitoring of its own"],
  ["ingress", "An ingress controller of its own"],
  ["seaweedfs", "SeaweedFS of its own"],
];
const USUAL_LIMITS = ["cpu", "memory", "storage", "pods"];

/**
 * The dialog that creates a tenant or edits one. While the user types, the API judges the tenant by a dry run, and its
 * errors appear beside their fields. Fires `saved` with the object.
 */
class TenantForm extends HTMLElement {
  connectedCallback() {
    this.dialog = h("dialog", { "aria-labelledby": "form-title" });
    this.replaceChildren(this.dialog);
    this.dialog.addEventListener("close", () => this.#forget());
  }

  /** A new tenant in a namespace. @param {string} namespace */
  create(namespace) {
    this.#open(`New tenant in ${namespace}`, "Create", null, namespace);
  }

  /** @param {any} object the Tenant as it is */
  edit(object) {
    this.#open(`Edit ${object.metadata.name}`, "Save", object, object.metadata.namespace);
  }

  #open(title, verb, object, namespace) {
    this.object = object;
    this.namespace = namespace;
    this.fields = new Map();
    this.spec = object?.spec ?? {};
    this.general = h("div", { class: "general", role: "alert" });
    this.submit = h("button", { class: "primary", type: "submit" }, verb);
    const form = h(
      "form",
      { method: "dialog", novalidate: true },
      h("h2", { id: "form-title" }, title),
      !object && this.#text("metadata.name", "Name", "", "lower-case letters and digits, such as alice"),
      this.#text("spec.host", "Domain", this.spec.host ?? "", "empty: <name>.<domain of the parent>"),
      h("fieldset", {}, h("legend", {}, "Services"), ...FLAGS.map(([name, label]) => this.#flag(name, label))),
      h("fieldset", {}, h("legend", {}, "Limits"), ...this.#limits()),
      this.general,
      h(
        "div",
        { class: "actions" },
        this.submit,
        h("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel"),
      ),
    );
    form.addEventListener("submit", (event) => this.#save(event));
    form.addEventListener("input", () => this.#judgeSoon());
    replace(this.dialog, form);
    this.dialog.showModal();
    this.dialog.querySelector("input")?.focus();
  }

  #text(path, label, value, hint = "") {
    const [id, errorId] = [uniqueId("field"), uniqueId("error")];
    const input = h("input", { id, type: "text", value, "aria-describedby": errorId, placeholder: hint, spellcheck: "false", autocomplete: "off" });
    const error = h("p", { id: errorId, class: "error" });
    this.fields.set(path, { input, error });
    return h("div", { class: "field" }, h("label", { for: id }, label), input, error);
  }

  #flag(name, label) {
    const [id, errorId] = [uniqueId("field"), uniqueId("error")];
    const input = h("input", { id, type: "checkbox", "aria-describedby": errorId });
    input.checked = this.spec[name] === true;
    const error = h("p", { id: errorId, class: "error" });
    this.fields.set(`spec.${name}`, { input, error });
    return h("div", { class: "flag" }, input, h("label", { for: id }, label), error);
  }

  #limits() {
    const declared = this.spec.resourceQuotas ?? {};
    const keys = [...new Set([...USUAL_LIMITS, ...Object.keys(declared)])];
    return keys.map((key) => this.#text(`spec.resourceQuotas[${key}]`, key, String(declared[key] ?? ""), "no limit"));
  }

  /** The spec that the fields say. @returns {Record<string, unknown>} */
  #entered() {
    const spec = { host: this.fields.get("spec.host").input.value.trim() };
    for (const [name] of FLAGS) spec[name] = this.fields.get(`spec.${name}`).input.checked;
    spec.resourceQuotas = {};
    for (const [path, { input }] of this.fields) {
      const key = /^spec\.resourceQuotas\[(.*)\]$/.exec(path)?.[1];
      if (key && input.value.trim()) spec.resourceQuotas[key] = input.value.trim();
    }
    return spec;
  }

  /** Sends what the user has changed, and nothing else. */
  #send(options) {
    const entered = this.#entered();
    if (this.object) {
      const patch = { metadata: { resourceVersion: this.object.metadata.resourceVersion }, spec: changes(this.spec, entered) };
      const { name, namespace } = this.object.metadata;
      return send("PATCH", tenantPath(namespace, name), patch, { type: "application/merge-patch+json", ...options });
    }
    const tenant = {
      apiVersion: "apps.cozystack.io/v1alpha1",
      kind: "Tenant",
      metadata: { name: this.fields.get("metadata.name").input.value.trim(), namespace: this.namespace },
      spec: changes({}, entered),
    };
    return send("POST", tenantPath(this.namespace), tenant, options);
  }

  #judgeSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#judge(), PAUSE_MS);
  }

  async #judge() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    if (!this.object && !this.fields.get("metadata.name").input.value.trim()) return this.#report([], "", []);
    try {
      const { warnings } = await this.#send({ dryRun: true, signal });
      this.#report([], "", warnings);
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  async #save(event) {
    event.preventDefault();
    clearTimeout(this.timer);
    this.abort?.abort();
    this.submit.disabled = true;
    try {
      const { object } = await this.#send({});
      this.dialog.close();
      this.dispatchEvent(new CustomEvent("saved", { detail: object }));
    } catch (error) {
      this.#fail(error);
      this.dialog.querySelector("[aria-invalid=true]")?.focus();
    } finally {
      this.submit.disabled = false;
    }
  }

  #fail(error) {
    const causes = error instanceof ApiError ? error.causes : [];
    const known = causes.filter((each) => this.#fieldOf(each.field ?? ""));
    let general = known.length === causes.length && causes.length > 0 ? "" : error.message;
    if (error instanceof ApiError && error.code === 409 && this.object) {
      general = "Somebody else has changed the tenant since you opened it. Close this dialog and open it again.";
    }
    this.#report(known, general, []);
  }

  #report(causes, general, warnings) {
    for (const { input, error } of this.fields.values()) {
      input.removeAttribute("aria-invalid");
      error.textContent = "";
    }
    for (const { field, message } of causes) {
      const { input, error } = this.#fieldOf(field);
      input.setAttribute("aria-invalid", "true");
      error.textContent = [error.textContent, message].filter(Boolean).join("; ");
    }
    replace(this.general, general && h("p", { class: "problem" }, general), ...warnings.map((each) => h("p", { class: "warning" }, each)));
  }

  #fieldOf(path) {
    return this.fields.get(path) ?? this.fields.get(path.replace(/^(spec\.\w+)[.[].*$/, "$1"));
  }

  #forget() {
    clearTimeout(this.timer);
    this.abort?.abort();
  }
}

/** The merge patch from one spec to another: a limit that is left empty is removed. */
function changes(before, after) {
  const found = {};
  for (const [name, value] of Object.entries(after)) {
    if (name === "resourceQuotas") {
      const old = before.resourceQuotas ?? {};
      const limits = {};
      for (const [key, amount] of Object.entries(value)) if (String(old[key] ?? "") !== amount) limits[key] = amount;
      for (const key of Object.keys(old)) if (!(key in value)) limits[key] = null;
      if (Object.keys(limits).length > 0) found.resourceQuotas = limits;
    } else if ((before[name] ?? (typeof value === "boolean" ? false : "")) !== value) {
      found[name] = value;
    }
  }
  return found;
}

customElements.define("tenant-form", TenantForm);
