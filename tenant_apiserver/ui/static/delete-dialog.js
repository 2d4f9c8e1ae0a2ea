/** The dialog that deletes a Tenant. It tells what is below it, and asks the server first by a dry run. */

import { ApiError, deleteTenant } from "./api.js";
import { h, newId, openDialog } from "./dom.js";
import { plural } from "./format.js";

const MOST_NAMES = 8;

/**
 * @param {object} subject
 * @param {any} subject.tenant
 * @param {readonly {name: string}[]} subject.children those that the user may see
 * @param {() => void} subject.onDone
 * @param {() => HTMLElement | null} [subject.returnTo]
 */
export function openDeleteDialog({ tenant, children, onDone, returnTo }) {
  const { namespace, name, uid } = tenant.metadata;
  const problem = h("div", { class: "callout bad", role: "alert", hidden: true });
  const id = newId("confirm");
  const input = h("input", { id, type: "text", autocomplete: "off", spellcheck: false });
  const submit = h("button", { type: "submit", class: "danger solid", disabled: true }, `Delete ${name}`);
  let refused = false;
  const fail = (/** @type {unknown} */ error) => {
    problem.replaceChildren(h("p", {}, error instanceof ApiError ? error.message : "The server cannot be reached."));
    problem.hidden = false;
  };
  const form = h("form", { noValidate: true }, problem,
    children.length > 0 && h("p", {}, `It has ${plural(children.length, "child", "children")}: ${namesOf(children)}.`),
    h("p", {}, `Its namespace ${tenant.status?.namespace ?? ""} is deleted with everything in it. This cannot be undone.`),
    h("div", { class: "field" }, h("label", { for: id }, `Type ${name} to confirm`), input),
    h("footer", {}, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  input.addEventListener("input", () => { submit.disabled = refused || input.value !== name; });
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    try {
      await deleteTenant(namespace, name, { uid });
      dialog.close();
      onDone();
    } catch (error) {
      submit.disabled = false;
      fail(error);
    }
  });
  const dialog = openDialog({ title: `Delete ${name}?`, class: "form", returnTo }, form);
  input.focus();
  deleteTenant(namespace, name, { dryRun: true }).catch((error) => {
    refused = error instanceof ApiError;
    submit.disabled = submit.disabled || refused;
    fail(error);
  });
}

/** @param {readonly {name: string}[]} children */
function namesOf(children) {
  const names = children.slice(0, MOST_NAMES).map((each) => each.name).join(", ");
  return children.length > MOST_NAMES ? `${names} and ${children.length - MOST_NAMES} more` : names;
}
