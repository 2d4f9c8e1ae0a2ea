import { send, tenantPath } from "./api.js";
import { h, replace } from "./dom.js";
import { count } from "./format.js";

/** Asks before a tenant is deleted. A dry run tells first what keeps it from being deleted, such as its children. */
class DeleteDialog extends HTMLElement {
  connectedCallback() {
    this.dialog = h("dialog", { "aria-labelledby": "delete-title" });
    this.replaceChildren(this.dialog);
  }

  /** @param {import("./tree.js").Tenant} tenant @param {import("./tree.js").Tenant[]} children */
  async ask(tenant, children) {
    const path = tenantPath(tenant.namespace, tenant.name);
    const problem = h("div", { role: "alert" });
    const confirm = h("button", { class: "danger", disabled: true }, "Delete");
    confirm.addEventListener("click", async () => {
      confirm.disabled = true;
      try {
        await send("DELETE", path, null);
        this.dialog.close();
      } catch (error) {
        replace(problem, h("p", { class: "problem" }, error.message));
      }
    });
    replace(
      this.dialog,
      h("h2", { id: "delete-title" }, `Delete ${tenant.name}?`),
      h("p", {}, `Its namespace ${tenant.workload || "(none yet)"} is deleted with everything in it. This cannot be undone.`),
      children.length > 0 && h("p", {}, `It has ${count(children.length, "child tenant")}: ${names(children)}`),
      problem,
      h("div", { class: "actions" }, confirm, h("button", { autofocus: true, onclick: () => this.dialog.close() }, "Cancel")),
    );
    this.dialog.showModal();
    try {
      await send("DELETE", path, null, { dryRun: true });
      confirm.disabled = false;
    } catch (error) {
      replace(problem, h("p", { class: "problem" }, error.message));
    }
  }
}

function names(tenants) {
  const shown = tenants.slice(0, 5).map((each) => each.name).join(", ");
  return tenants.length > 5 ? `${shown} and ${tenants.length - 5} more` : shown;
}

customElements.define("delete-dialog", DeleteDialog);
