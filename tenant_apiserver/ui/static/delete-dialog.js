/** The dialog that deletes a Tenant. It tells what is below it, and asks the server by dry runs. */

import { ApiError, deleteTenant } from "./api.js";
import { h, newId, openDialog } from "./dom.js";
import { plural } from "./format.js";

const MOST_NAMES = 8;
const AGAIN_MS = 3_000;
const NOT_FOUND = 404;

/**
 * A refusal may end while the dialog is open, as when somebody deletes the last child: so the server is asked again.
 * @param {object} subject
 * @param {any} subject.tenant
 * @param {() => readonly {name: string}[]} subject.children those that the user may see now
 * @param {() => void} subject.onDone
 * @param {() => HTMLElement | null} [subject.returnTo]
 */
export function openDeleteDialog({ tenant, children, onDone, returnTo }) {
  const { namespace, name, uid } = tenant.metadata;
  const problem = h("div", { class: "callout bad", role: "alert", hidden: true });
  const below = h("p", {});
  const id = newId("confirm");
  const input = h("input", { id, type: "text", autocomplete: "off", spellcheck: false });
  const submit = h("button", { type: "submit", class: "danger solid", disabled: true }, `Delete ${name}`);
  let refused = false;
  let sending = false;
  let timer = 0;
  const showState = (/** @type {unknown} */ error) => {
    const text = !error ? "" : error instanceof ApiError ? error.message : "The server cannot be reached.";
    // a text that stays is not read aloud again
    if (problem.textContent !== text) problem.replaceChildren(h("p", {}, text));
    problem.hidden = !text;
    below.textContent = childrenText(children());
    below.hidden = !below.textContent;
    submit.disabled = refused || sending || input.value !== name;
  };
  const ask = async () => {
    try {
      if (!document.hidden) {
        await deleteTenant(namespace, name, { dryRun: true });
        refused = false;
        if (!sending) showState(undefined);
        return;
      }
    } catch (error) {
      refused = error instanceof ApiError;
      if (!sending) showState(error);
      if (error instanceof ApiError && error.code === NOT_FOUND) return;
    }
    if (dialog.open) timer = window.setTimeout(ask, AGAIN_MS);
  };
  const form = h("form", { noValidate: true }, problem, below,
    h("p", {}, `Its namespace ${tenant.status?.namespace ?? ""} is deleted with everything in it. This cannot be undone.`),
    h("div", { class: "field" }, h("label", { for: id }, `Type ${name} to confirm`), input),
    h("footer", {}, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  input.addEventListener("input", () => { submit.disabled = refused || sending || input.value !== name; });
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (submit.disabled) return;
    clearTimeout(timer);
    sending = true;
    submit.disabled = true;
    try {
      await deleteTenant(namespace, name, { uid });
      dialog.close();
      onDone();
    } catch (error) {
      sending = false;
      showState(error);
    }
  });
  const dialog = openDialog({ title: `Delete ${name}?`, class: "form", returnTo }, form);
  dialog.addEventListener("close", () => clearTimeout(timer));
  showState(undefined);
  input.focus();
  ask();
}

/** @param {readonly {name: string}[]} children */
const childrenText = (children) => (children.length ? `It has ${plural(children.length, "child", "children")}: ${namesOf(children)}.` : "");

/** @param {readonly {name: string}[]} children */
function namesOf(children) {
  const names = children.slice(0, MOST_NAMES).map((each) => each.name).join(", ");
  return children.length > MOST_NAMES ? `${names} and ${children.length - MOST_NAMES} more` : names;
}
