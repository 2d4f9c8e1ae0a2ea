/** Requests of the Kubernetes API: read, list in pages, watch, and write. */

import { messageText } from "./format.js";

const JSON_TYPE = "application/json";
const MERGE_PATCH = "application/merge-patch+json";
const PAGE_SIZE = 500;
/** The server ends a watch after this time, so that a connection that died without a sign is not waited on for ever. */
const WATCH_SECONDS = 280;
/** The time for which events are taken over at once; the browser draws and answers keys between two slices. */
const SLICE_MS = 8;

export const TENANTS = "/apis/apps.cozystack.io/v1alpha1";

/** The path of a Tenant, of its subresource, or of the Tenants of a namespace or of all. */
export function tenantPath(namespace = "", name = "", subresource = "") {
  const parts = [TENANTS, ...(namespace ? ["namespaces", namespace] : []), "tenants", name, subresource];
  return parts.filter(Boolean).join("/");
}

/** An answer of the API that is not a success: a Status of Kubernetes. Its texts may quote objects of anybody. */
export class ApiError extends Error {
  /** @param {any} status @param {number} code */
  constructor(status, code) {
    super(messageText(status?.message || `the server answered ${code}`));
    this.code = status?.code || code;
    this.reason = status?.reason || "";
    /** @type {{field?: string, message?: string, reason?: string}[]} */
    this.causes = (status?.details?.causes ?? []).map((/** @type {any} */ each) => ({ ...each, message: messageText(each.message) }));
  }
}

/**
 * @typedef {object} Answer
 * @property {any} object
 * @property {string[]} warnings of the API, as kubectl prints them
 */

/**
 * Sends one request. Raises ApiError, and TypeError if the server cannot be reached.
 * @param {string} method
 * @param {string} path
 * @param {{query?: Record<string, string>, body?: unknown, type?: string, signal?: AbortSignal}} [options]
 * @returns {Promise<Answer>}
 */
export async function request(method, path, { query, body, type = JSON_TYPE, signal } = {}) {
  const headers = { Accept: JSON_TYPE, ...(method === "GET" ? {} : { "Content-Type": type, "X-Tenant-UI": "1" }) };
  const response = await fetch(withQuery(path, query), {
    method, headers, signal, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
  });
  const object = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(object, response.status);
  return { object, warnings: warningsOf(response.headers.get("Warning")) };
}

/** @param {string} path @param {Record<string, string>} [query] @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function get(path, query, signal) {
  return (await request("GET", path, { query, signal })).object;
}

/** @param {string} namespace @param {unknown} tenant @param {{dryRun?: boolean, signal?: AbortSignal}} [options] */
export function createTenant(namespace, tenant, { dryRun = false, signal } = {}) {
  return request("POST", tenantPath(namespace), { query: writeQuery(dryRun), body: tenant, signal });
}

/** @param {string} namespace @param {string} name @param {unknown} patch @param {{dryRun?: boolean, signal?: AbortSignal}} [options] */
export function patchTenant(namespace, name, patch, { dryRun = false, signal } = {}) {
  return request("PATCH", tenantPath(namespace, name), { query: writeQuery(dryRun), body: patch, type: MERGE_PATCH, signal });
}

/**
 * All options are in the body: Kubernetes ignores those in the query of a deletion that has a body, also `dryRun`.
 * @param {string} namespace @param {string} name @param {{dryRun?: boolean, uid?: string}} [options]
 */
export function deleteTenant(namespace, name, { dryRun = false, uid } = {}) {
  const options = { ...(dryRun ? { dryRun: ["All"] } : {}), ...(uid ? { preconditions: { uid } } : {}) };
  const body = { apiVersion: "v1", kind: "DeleteOptions", ...options };
  return request("DELETE", tenantPath(namespace, name), { body });
}

/**
 * Calls `onPage` with each page of a list.
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {(items: any[]) => void} onPage
 * @param {AbortSignal} signal
 * @returns {Promise<string>} the resourceVersion of the list, to watch from
 */
export async function list(path, query, onPage, signal) {
  let next = "";
  for (;;) {
    const page = await get(path, { ...query, limit: String(PAGE_SIZE), ...(next ? { continue: next } : {}) }, signal);
    onPage(page.items ?? []);
    next = page.metadata?.continue ?? "";
    if (!next) return page.metadata?.resourceVersion ?? "";
    await breathe();
  }
}

/**
 * Watches from a resourceVersion until the server ends the watch. Raises ApiError, with code 410 if the version is too
 * old, and TypeError if the connection breaks.
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {string} resourceVersion
 * @param {{onOpen: () => void, onEvent: (type: string, object: any) => void}} handlers bookmarks are events, too
 * @param {AbortSignal} signal
 */
export async function watch(path, query, resourceVersion, { onOpen, onEvent }, signal) {
  const asked = { ...query, watch: "1", allowWatchBookmarks: "true", resourceVersion, timeoutSeconds: String(WATCH_SECONDS) };
  const response = await fetch(withQuery(path, asked), { headers: { Accept: JSON_TYPE }, signal, cache: "no-store" });
  if (!response.ok || !response.body) throw new ApiError(await response.json().catch(() => undefined), response.status);
  onOpen();
  let slice = performance.now();
  for await (const line of lines(response.body)) {
    const event = JSON.parse(line);
    if (event.type === "ERROR") throw new ApiError(event.object, event.object?.code ?? 500);
    onEvent(event.type, event.object);
    if (performance.now() - slice > SLICE_MS) {
      await breathe();
      slice = performance.now();
    }
  }
}

/** The lines of a body, while it arrives. @param {ReadableStream<Uint8Array>} body */
async function* lines(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      yield* parts.filter(Boolean);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Lets the browser draw and answer the user. */
export function breathe() {
  const scheduler = /** @type {any} */ (globalThis).scheduler;
  return scheduler?.yield ? scheduler.yield() : new Promise((resolve) => setTimeout(resolve));
}

/** @param {string} path @param {Record<string, string>} [query] */
function withQuery(path, query) {
  const text = Object.entries(query ?? {}).map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return text ? `${path}?${text}` : path;
}

/** @param {boolean} dryRun @returns {Record<string, string>} */
function writeQuery(dryRun) {
  return { fieldManager: "tenant-ui", fieldValidation: "Strict", ...(dryRun ? { dryRun: "All" } : {}) };
}

/** The texts of a Warning header (RFC 7234 5.5): 299 - "text", 299 - "text". @param {string | null} header */
function warningsOf(header) {
  return [...(header ?? "").matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((found) => messageText(found[1].replace(/\\(.)/g, "$1")));
}
