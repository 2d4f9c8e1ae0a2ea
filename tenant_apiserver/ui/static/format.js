/** Texts and amounts for people. Pure. */

const SUFFIXES = new Map([
  ["n", 1e-9], ["u", 1e-6], ["m", 1e-3], ["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12], ["P", 1e15],
  ["E", 1e18], ["Ki", 2 ** 10], ["Mi", 2 ** 20], ["Gi", 2 ** 30], ["Ti", 2 ** 40], ["Pi", 2 ** 50], ["Ei", 2 ** 60],
]);
const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|[KMGTPE]i|)$/;
const DAY = 86_400_000;

/**
 * The number that a Kubernetes quantity stands for, such as 0.25 for "250m".
 * @param {unknown} quantity a string or a number
 * @returns {number} NaN if it is not a quantity
 */
export function amount(quantity) {
  const found = QUANTITY.exec(String(quantity ?? "").trim());
  return found ? Number(found[1]) * SUFFIXES.get(found[2]) : NaN;
}

/**
 * An amount in the unit of another quantity: 1.5 GiB is "1.5Gi" like "4Gi", and "1536Mi" like "4096Mi".
 * @param {unknown} like
 * @param {number} value
 */
export function quantityLike(like, value) {
  const unit = QUANTITY.exec(String(like ?? "").trim())?.[2] ?? "";
  const shown = Number((value / SUFFIXES.get(unit)).toFixed(3));
  if (shown === 0) return "0";
  return unit === "" && !Number.isInteger(shown) && Math.abs(shown) < 1000 ? `${Math.round(value * 1000)}m` : `${shown}${unit}`;
}

/**
 * The time since a moment in one unit, as kubectl shows it: "12s", "5m", "3h", "9d".
 * @param {string | undefined} moment an RFC 3339 time
 * @param {number} now milliseconds
 */
export function age(moment, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(moment ?? "")) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/**
 * Whole days until a moment; negative after it.
 * @param {string | undefined} moment an RFC 3339 time
 * @param {number} now milliseconds
 * @returns {number | undefined} undefined if there is no such time
 */
export function daysLeft(moment, now) {
  const end = Date.parse(moment ?? "");
  return Number.isNaN(end) ? undefined : Math.floor((end - now) / DAY);
}

/** @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/**
 * The text with every character escaped that hides others or changes their order: names and messages are any text, and
 * anybody may have written them. The plugin does the same.
 * @param {unknown} text
 */
export function visible(text) {
  return String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A message as one line, whatever it is made of. @param {unknown} text */
export function messageText(text) {
  return visible(String(text ?? "").replace(/\s+/g, " "));
}

/** The word for a status of a condition or the verdict of a fact. @param {string | undefined} status */
export function statusWord(status) {
  return status === "True" ? "Ready" : status === "False" ? "Not ready" : "Unknown";
}

/** The class of a status in the style sheet. @param {string | undefined} status */
export function statusClass(status) {
  return status === "True" ? "good" : status === "False" ? "bad" : "unsure";
}
