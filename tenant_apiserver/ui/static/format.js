// Texts and numbers as people read them. Pure.

const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const DECIMAL = { n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };

/** The number of a Kubernetes quantity such as 1500m or 32Gi; NaN if it is none. */
export function quantity(text) {
  const found = /^([+-]?[0-9.]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$/.exec(String(text));
  if (!found) return NaN;
  const [, digits, suffix = ""] = found;
  if (/^[eE][+-]?[0-9]/.test(suffix)) return Number(digits + suffix);
  return Number(digits) * (BINARY[suffix] ?? DECIMAL[suffix] ?? 1);
}

/** How much of a limit is used, between 0 and 1. */
export function share(used, hard) {
  const [a, b] = [quantity(used), quantity(hard)];
  if (!Number.isFinite(a) || !Number.isFinite(b)) return 0;
  if (b <= 0) return a > 0 ? 1 : 0;
  return Math.max(0, Math.min(1, a / b));
}

/** An age as kubectl shows it: 45s, 12m, 3h, 8d. */
export function age(timestamp, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 120 * 60) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

/** Whole days until a time, negative after it; null without one. */
export function daysLeft(timestamp, now = Date.now()) {
  const end = Date.parse(timestamp ?? "");
  return Number.isNaN(end) ? null : Math.floor((end - now) / 86400000);
}

/** A count with its noun: 1 tenant, 3 tenants. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
