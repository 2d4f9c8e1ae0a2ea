/** Builds elements. What tenants write is only ever text: nothing here parses HTML. */

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties] `class`, `on…` as listeners, `aria-…`, `role` and `data-…` as attributes, and
 *   everything else as properties
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false || value === null) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (/^(aria-|data-|role$|for$)/.test(name)) element.setAttribute(name, String(value));
    else /** @type {any} */ (element)[name] = value;
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(String(child) === child ? child : typeof child === "number" ? String(child) : child);
  return element;
}

/**
 * Replaces the children of an element, and keeps the focus on the element with the same `data-focus`.
 * @param {Element} parent
 * @param {...(Node | null | undefined | false)} children
 */
export function replaceContent(parent, ...children) {
  const active = document.activeElement;
  const focused = active && parent.contains(active) ? active.getAttribute("data-focus") : null;
  parent.replaceChildren(...children.filter((each) => each instanceof Node));
  if (focused !== null) {
    const found = [...parent.querySelectorAll("[data-focus]")].find((each) => each.getAttribute("data-focus") === focused);
    /** @type {HTMLElement | undefined} */ (found)?.focus();
  }
}

let numbers = 0;

/** A new id, for labels and descriptions. @param {string} prefix */
export function newId(prefix) {
  numbers += 1;
  return `${prefix}-${numbers}`;
}

const ANNOUNCED_MS = 1_000;
let announced = { text: "", at: -ANNOUNCED_MS };

/** Tells users of screen readers, after the last text if that is less than a second old. @param {string} text */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (!region) return;
  const now = performance.now();
  region.textContent = now - announced.at < ANNOUNCED_MS ? `${announced.text}. ${text}` : text;
  announced = { text, at: now };
}

/**
 * A modal dialog that is removed when it closes. The browser keeps the focus inside, closes it on Escape, and returns the
 * focus to where it was; `returnTo` has it where that element is gone.
 * @param {{title: string, class?: string, returnTo?: () => HTMLElement | null}} options
 * @param {...Node} content
 * @returns {HTMLDialogElement}
 */
export function openDialog({ title, class: style = "", returnTo }, ...content) {
  const id = newId("title");
  const close = h("button", { type: "button", class: "icon close", "aria-label": "Close", onclick: () => dialog.close() });
  const dialog = h("dialog", { class: style, "aria-labelledby": id },
    h("div", { class: "heading" }, h("h2", { id }, title), close), ...content);
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  dialog.addEventListener("close", () => {
    dialog.remove();
    (before?.isConnected && before !== document.body ? before : returnTo?.())?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
