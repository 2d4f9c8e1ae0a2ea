/** One row of the tree: its element, and the lines that connect it with its parent. */

import { h } from "./dom.js";
import { statusClass, statusWord, visible } from "./format.js";

/** @typedef {import("./store.js").Row} Row */

const LINE = "linear-gradient(var(--line), var(--line))";
const FRESH_MS = 1500;

/** Seven elements: with the rows above and below the screen, a tall window has some 300. */
export function newRow() {
  return h("div", { class: "row", role: "treeitem", tabIndex: -1 },
    h("span", { class: "name" }, h("span", { class: "twisty" }), h("span", { class: "text" })),
    h("span", { class: "host" }), h("span", { class: "meter" }), h("span", { class: "chip" }));
}

/**
 * Shows a row of the tree in the element.
 * @param {any} element of newRow
 * @param {Row} row
 * @param {import("./quotas.js").QuotaRow | null} quota the fullest one
 * @param {{indent: number, selected: boolean, changedAt: number | undefined}} look
 */
export function showRow(element, row, quota, { indent, selected, changedAt }) {
  const { node } = row;
  const [name, host, meter, chip] = element.children;
  element.dataset.key = node.key;
  setAttributes(element, {
    "aria-level": row.level, "aria-posinset": row.position, "aria-setsize": row.size, "aria-selected": selected,
    "aria-expanded": row.hasChildren ? row.expanded : null, "aria-label": visible(labelOf(row, quota)),
  });
  element.classList.toggle("context", !row.matches);
  element.classList.toggle("parent", row.hasChildren);
  drawLines(element, row, indent);
  name.style.paddingInlineStart = `${8 + (row.level - 1) * indent}px`;
  setText(name.children[1], node.name);
  setText(host, node.host);
  const taken = quota ? quota.allocatedShare + quota.usedShare : 0;
  meter.className = quota ? `meter ${taken >= 0.9 ? "tight" : ""}` : "meter none";
  meter.style.setProperty("--taken", `${Math.round(taken * 100)}%`);
  setText(meter, quota ? `${quota.resource} ${quota.left} left` : "");
  chip.className = `chip ${node.terminating ? "unsure" : statusClass(node.ready)}`;
  setText(chip, stateOf(node));
  if (changedAt !== undefined && performance.now() - changedAt < FRESH_MS) flash(element);
}

/** @param {import("./store.js").TenantNode} node */
export function stateOf(node) {
  if (node.terminating) return "Being deleted";
  return node.ready === "True" ? "Ready" : node.reason || statusWord(node.ready);
}

/** @param {Row} row @param {import("./quotas.js").QuotaRow | null} quota */
function labelOf({ node }, quota) {
  const state = node.ready === "True" || node.terminating ? stateOf(node) : `${statusWord(node.ready)}: ${stateOf(node)}`;
  return [node.name, state, node.host, quota && `${quota.resource} ${quota.left} left of ${quota.declared}`].filter(Boolean).join(", ");
}

/** The lines are backgrounds, and need no elements. @param {HTMLElement} element @param {Row} row @param {number} indent */
function drawLines(element, { level, position, size, guides }, indent) {
  if (level === 1) {
    element.style.backgroundImage = "";
    return;
  }
  const images = [], places = [], sizes = [];
  const add = (/** @type {number} */ x, /** @type {string} */ y, /** @type {string} */ extent) => {
    images.push(LINE);
    places.push(`${x}px ${y}`);
    sizes.push(extent);
  };
  guides.forEach((goesOn, depth) => goesOn && add(18 + depth * indent, "0", "1px 100%"));
  const x = 18 + (level - 2) * indent;
  add(x, "0", position === size ? "1px 50%" : "1px 100%");
  add(x, "50%", `${indent - 9}px 1px`);
  element.style.backgroundImage = images.join(", ");
  element.style.backgroundPosition = places.join(", ");
  element.style.backgroundSize = sizes.join(", ");
}

/** @param {HTMLElement} element */
function flash(element) {
  element.classList.remove("changed");
  element.addEventListener("animationend", () => element.classList.remove("changed"), { once: true });
  requestAnimationFrame(() => element.classList.add("changed"));
}

/** @param {Element} element @param {Record<string, string | number | boolean | null>} values null removes the attribute */
function setAttributes(element, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
  }
}

/** @param {Element} element @param {string} text */
function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}
