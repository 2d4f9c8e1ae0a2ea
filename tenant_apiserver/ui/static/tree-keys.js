/** What a key does in the tree (WAI-ARIA Authoring Practices, tree view). Pure. */

/** @typedef {import("./store.js").Row} Row */
/** @typedef {{move?: number, expand?: boolean, expandSiblings?: boolean, open?: boolean}} Step */

/**
 * @param {string} key KeyboardEvent.key
 * @param {readonly Row[]} rows
 * @param {number} at the index of the active row
 * @param {number} page rows that fit on the screen
 * @returns {Step | undefined} undefined for a key that the tree does not use
 */
export function stepOf(key, rows, at, page) {
  const row = rows[at];
  if (!row) return undefined;
  const last = rows.length - 1;
  const to = (/** @type {number} */ index) => ({ move: Math.max(0, Math.min(last, index)) });
  switch (key) {
    case "ArrowDown": return to(at + 1);
    case "ArrowUp": return to(at - 1);
    case "PageDown": return to(at + page);
    case "PageUp": return to(at - page);
    case "Home": return to(0);
    case "End": return to(last);
    case "ArrowRight":
      if (row.hasChildren && !row.expanded) return { expand: true };
      return row.expanded ? to(at + 1) : {};
    case "ArrowLeft":
      return row.expanded ? { expand: false } : to(parentIndex(rows, at));
    case "Enter":
    case " ": return { open: true };
    case "*": return { expandSiblings: true };
    default: return undefined;
  }
}

/** The index of the row above it, or its own at the top. @param {readonly Row[]} rows @param {number} at */
export function parentIndex(rows, at) {
  for (let index = at - 1; index >= 0; index -= 1) if (rows[index].level < rows[at].level) return index;
  return at;
}

/**
 * The next row whose name begins with what is typed, after the active row; with one letter typed again and again, the
 * next one each time.
 * @param {readonly Row[]} rows @param {number} at @param {string} typed
 * @returns {number} -1 if there is none
 */
export function typeAhead(rows, at, typed) {
  const text = new Set(typed).size === 1 ? typed[0] : typed;
  const first = text.length > 1 ? at : at + 1;
  for (let step = 0; step < rows.length; step += 1) {
    const index = (first + step) % rows.length;
    if (rows[index].node.name.startsWith(text)) return index;
  }
  return -1;
}
