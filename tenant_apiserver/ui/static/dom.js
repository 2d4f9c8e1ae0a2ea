// Elements without markup: every text that comes from the cluster becomes a text node, so that no name, host or message
// can be HTML.

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] attributes; `on…` are listeners, and null or false leaves one out
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Element} element @param {(Node|string|null|undefined|false)[]} children */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

function append(element, children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

let nextId = 0;

/** An id that no other element has. */
export function uniqueId(prefix) {
  nextId += 1;
  return `${prefix}-${nextId}`;
}

const TONES = { True: "good", False: "bad", Unknown: "open" };

/** A status as a coloured word. `about` names what has it, for those who do not see the place. */
export function chip(status, text = status, about = "") {
  return h("span", { class: `chip ${TONES[status] ?? "open"}`, title: about || null }, text);
}
