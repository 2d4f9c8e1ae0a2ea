/** The dialog that creates or edits a Tenant. The server checks what is typed by dry runs. */

import { ApiError, createTenant, get, patchTenant, tenantPath } from "./api.js";
import { announce, h, newId, openDialog } from "./dom.js";
import { newTenant, patchOf, placeErrors, rebased, SWITCHES, valuesOf } from "./form-values.js";

const PAUSE_MS = 250;
const COMMON_RESOURCES = ["cpu", "memory", "storage", "requests.cpu", "limits.memory", "count/services", "pods"];

/**
 * @typedef {object} Subject
 * @property {string} namespace where the Tenant lies
 * @property {string} parent the name of its parent, for people
 * @property {any} [tenant] the one to edit; a new one without
 * @property {(tenant: any, warnings: string[]) => void} onDone
 * @property {() => HTMLElement | null} [returnTo]
 */

class TenantForm {
  /** @param {Subject} subject */
  constructor(subject) {
    this._subject = subject;
    this._base = subject.tenant;
    /** @type {Map<string, {input: HTMLElement, error: HTMLElement}>} */ this._fields = new Map();
    /** @type {Set<string>} fields whose errors are shown: those that the user has been to */ this._touched = new Set();
    /** @type {AbortController | undefined} */ this._running = undefined;
    this._timer = 0;
    this._top = h("div", { class: "callout bad", role: "alert", hidden: true });
    this._preview = h("p", { class: "note preview", "aria-live": "polite" });
    this._submit = h("button", { type: "submit", class: "primary" }, this._base ? "Save" : "Create");
    this._dialog = openDialog({ title: this._title(), class: "form", returnTo: subject.returnTo }, this._form(valuesOf(this._base)));
    this._dialog.addEventListener("close", () => this._stop());
    this._element.querySelector("input")?.focus();
  }

  _title() {
    return this._base ? `Edit ${this._base.metadata.name}` : `New tenant in ${this._subject.parent}`;
  }

  /** @param {import("./form-values.js").Values} values */
  _form(values) {
    this._quotas = h("div", { class: "quota-rows" });
    values.quotas.forEach(([resource, value]) => this._addQuota(resource, value));
    const list = h("datalist", { id: "resources" }, ...COMMON_RESOURCES.map((value) => h("option", { value })));
    const form = h("form", { noValidate: true, autocomplete: "off" }, this._top,
      !this._base && this._text("name", "Name", values.name, "Lowercase letters and digits"),
      this._text("host", "Domain", values.host, `Empty: below the domain of ${this._subject.parent || "its parent"}`),
      h("fieldset", {}, h("legend", {}, "Runs its own"), h("div", { class: "switches" }, ...SWITCHES.map((name) => this._switch(name, values.switches[name]))), h("p", { class: "note" }, "What is off comes from the nearest tenant above that has it.")),
      h("fieldset", {}, h("legend", {}, "Quota"), this._quotas, this._errorOf("quotas", this._quotas), h("button", { type: "button", class: "add", onclick: () => this._addQuota("", "").focus() }, "Add a resource"), list),
      this._text("schedulingClass", "Scheduling class", values.schedulingClass, "Of the tenant's workloads; may be empty"),
      this._preview,
      h("footer", {}, h("button", { type: "button", onclick: () => this._dialog.close() }, "Cancel"), this._submit));
    form.addEventListener("input", (/** @type {any} */ event) => this._onInput(event.target));
    form.addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); this._save(); });
    return (this._element = form);
  }

  /** @param {string} name @param {string} label @param {string} value @param {string} hint */
  _text(name, label, value, hint) {
    const id = newId(name), hintId = newId("hint");
    const input = h("input", { id, name, value, type: "text", spellcheck: false, autocomplete: "off", "aria-describedby": hintId, "data-field": name });
    return h("div", { class: "field" }, h("label", { for: id }, label), input, h("p", { class: "note", id: hintId }, hint), this._errorOf(name, input));
  }

  /** @param {string} name @param {boolean} checked */
  _switch(name, checked) {
    const input = h("input", { type: "checkbox", name, checked, "data-field": name });
    return h("div", {}, h("label", { class: "switch" }, input, name), this._errorOf(name, input));
  }

  /** @param {string} resource @param {string} value @returns {HTMLInputElement} */
  _addQuota(resource, value) {
    const key = h("input", { type: "text", value: resource, "aria-label": "Resource", placeholder: "cpu", spellcheck: false, autocomplete: "off" });
    key.setAttribute("list", "resources");
    const amount = h("input", { type: "text", value, "aria-label": "Amount", placeholder: "4", spellcheck: false, autocomplete: "off" });
    const error = h("p", { class: "error", id: newId("error"), hidden: true });
    const row = h("div", { class: "quota-row" }, key, amount, h("button", { type: "button", class: "icon close", "aria-label": "Remove this resource", onclick: () => {
      row.remove();
      this._onInput(null);
      /** @type {HTMLElement | null} */ (this._element.querySelector(".add"))?.focus();
    } }), error);
    row.quota = { key, amount, error };
    this._quotas?.append(row);
    return key;
  }

  /** @param {string} name @param {HTMLElement} input */
  _errorOf(name, input) {
    const error = h("p", { class: "error", id: newId("error"), hidden: true });
    this._fields.set(name, { input, error });
    return error;
  }

  /** @returns {any[]} */
  _quotaRows() {
    return [.../** @type {any} */ (this._quotas).children].map((row) => row.quota);
  }

  /** @returns {import("./form-values.js").Values} */
  _values() {
    const text = (/** @type {string} */ name) => /** @type {any} */ (this._fields.get(name)?.input)?.value.trim() ?? "";
    return {
      name: this._base?.metadata.name ?? text("name"),
      host: text("host"),
      schedulingClass: text("schedulingClass"),
      switches: Object.fromEntries(SWITCHES.map((name) => [name, /** @type {any} */ (this._fields.get(name)?.input).checked])),
      quotas: this._quotaRows().map(({ key, amount }) => [key.value.trim(), amount.value.trim()]),
    };
  }

  /** @param {HTMLElement | null} target */
  _onInput(target) {
    this._touched.add(target?.dataset.field ?? "quotas");
    this._stop();
    this._timer = window.setTimeout(() => this._check(), PAUSE_MS);
  }

  _stop() {
    clearTimeout(this._timer);
    this._running?.abort();
  }

  /** A dry run. Errors of fields that the user has not been to yet wait. */
  async _check() {
    const values = this._values();
    const { signal } = (this._running = new AbortController());
    this._element.setAttribute("aria-busy", "true");
    try {
      const answer = await this._send(values, true, signal);
      if (signal.aborted) return;
      this._showErrors(new Map(), []);
      this._showPreview(answer);
    } catch (error) {
      if (!signal.aborted) this._fail(error, values, false);
    }
    this._element.removeAttribute("aria-busy");
  }

  async _save() {
    this._stop();
    const values = this._values();
    this._submit.disabled = true;
    try {
      const answer = await this._send(values, false, undefined);
      this._dialog.close();
      if (answer) this._subject.onDone(answer.object, answer.warnings);
    } catch (error) {
      this._submit.disabled = false;
      this._fail(error, values, true);
      const first = /** @type {HTMLElement | null} */ (this._element.querySelector("[aria-invalid=true]"));
      first?.focus();
    }
  }

  /** @param {import("./form-values.js").Values} values @param {boolean} dryRun @param {AbortSignal} [signal] @returns {Promise<import("./api.js").Answer | undefined>} */
  async _send(values, dryRun, signal) {
    if (!this._base) return createTenant(this._subject.namespace, newTenant(values, this._subject.namespace), { dryRun, signal });
    const patch = patchOf(this._base, values);
    return patch && patchTenant(this._base.metadata.namespace, this._base.metadata.name, patch, { dryRun, signal });
  }

  /** @param {unknown} error @param {import("./form-values.js").Values} values @param {boolean} all true to show what belongs to fields that were not touched */
  _fail(error, values, all) {
    this._preview.replaceChildren();
    if (!(error instanceof ApiError)) return this._showErrors(new Map(), ["The server cannot be reached."]);
    if (error.reason === "AlreadyExists") return this._showErrors(new Map([["name", "There is a tenant with this name."]]), []);
    const { fields, rest } = placeErrors(error.causes, error.message, values.quotas.map(([resource]) => resource));
    const shown = [...fields].filter(([name]) => all || this._touched.has(name.startsWith("quota") ? "quotas" : name));
    this._showErrors(new Map(shown), rest);
    if (error.reason === "Conflict" && this._base) this._offerReload();
  }

  /** @param {Map<string, string>} fields @param {string[]} rest */
  _showErrors(fields, rest) {
    this._top.replaceChildren(...rest.map((text) => h("p", {}, text)));
    this._top.hidden = !rest.length;
    for (const [name, { input, error }] of this._fields) setError(input, error, fields.get(name) ?? "");
    for (const { key, amount, error } of this._quotaRows()) setError(amount, error, fields.get(`quota:${key.value.trim()}`) ?? "");
  }

  /** What was changed here stays; everything else is as the other has left it. */
  _offerReload() {
    const button = h("button", { type: "button", onclick: async () => {
      const { namespace, name } = this._base.metadata;
      const before = valuesOf(this._base);
      this._base = await get(tenantPath(namespace, name));
      const values = rebased(before, valuesOf(this._base), this._values());
      this._element.replaceWith(this._form(values));
      this._showErrors(new Map(), []);
      announce("The newer version is loaded, with your changes on top.");
      this._submit.focus();
      this._check();
    } }, "Load the newer version, and keep my changes");
    this._top.replaceChildren(h("p", {}, "The tenant was changed by another since you opened it."), button);
    this._top.hidden = false;
  }

  /** @param {import("./api.js").Answer | undefined} answer */
  _showPreview(answer) {
    if (!answer) return this._preview.replaceChildren("Nothing is changed yet.");
    const { object, warnings } = answer;
    const made = this._base ? "The server accepts this." : `The server accepts this. Its namespace will be ${object.status?.namespace}.`;
    this._preview.replaceChildren(made, ...warnings.map((text) => h("span", { class: "warning" }, text)));
  }
}

/** @param {HTMLElement} input @param {HTMLElement} error @param {string} text */
function setError(input, error, text) {
  error.textContent = text;
  error.hidden = !text;
  if (input.getAttribute("data-field") || input instanceof HTMLInputElement) {
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    const ids = (input.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== error.id);
    const described = [...ids, ...(text ? [error.id] : [])].join(" ");
    if (described) input.setAttribute("aria-describedby", described);
    else input.removeAttribute("aria-describedby");
  }
}

/** @param {Subject} subject */
export function openTenantForm(subject) {
  return new TenantForm(subject);
}
