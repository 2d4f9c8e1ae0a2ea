// Requests to the Kubernetes API, which the server of this page forwards with the user's credentials.

export const TENANTS = "/apis/apps.cozystack.io/v1alpha1";
const PAGE = 250;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15000;
const WATCH_SECONDS = 280;

/** A Status that the API answered with. */
export class ApiError extends Error {
  /** @param {number} code @param {any} status */
  constructor(code, status) {
    super(status?.message || `the server answered ${code}`);
    this.code = code;
    /** @type {{field?: string, message?: string}[]} */
    this.causes = status?.details?.causes ?? [];
  }
}

/** The path of one Tenant, or of the Tenants of a namespace. */
export function tenantPath(namespace, name = "", subresource = "") {
  const parts = [TENANTS, "namespaces", namespace, "tenants", name, subresource];
  return parts.filter(Boolean).join("/");
}

/**
 * The document that the API answers with. Throws an ApiError, or a TypeError if the server is gone.
 * @param {string} path @param {Record<string, string>} [query]
 */
export async function get(path, query = {}, signal = undefined) {
  const response = await fetch(url(path, query), { signal, headers: { Accept: "application/json" } });
  return document(response);
}

/** Sends a change. `dryRun` stores nothing, and answers as if it had. Returns the document and the server's warnings. */
export async function send(method, path, body, { dryRun = false, type = "application/json", signal } = {}) {
  const query = { fieldManager: "tenant-ui", ...(method !== "DELETE" && { fieldValidation: "Strict" }) };
  if (method === "DELETE") delete query.fieldManager;
  if (dryRun) query.dryRun = "All";
  const response = await fetch(url(path, query), {
    method,
    signal,
    headers: { Accept: "application/json", "Content-Type": type, "X-Tenant-UI": "1" },
    body: body === null ? undefined : JSON.stringify(body),
  });
  return { object: await document(response), warnings: warnings(response.headers.get("Warning") ?? "") };
}

/**
 * Keeps `handler` up to date with a kind: lists it in pages, then watches, and lists again when the server has forgotten
 * the version. `handler` has add(objects), remove(object), listed(keys) and state(text, error).
 */
export class Reflector {
  /** @param {string} path @param {Record<string, string>} query */
  constructor(path, query, handler) {
    this.path = path;
    this.query = query;
    this.handler = handler;
    this.abort = new AbortController();
  }

  stop() {
    this.abort.abort();
  }

  async run() {
    let pause = FIRST_PAUSE_MS;
    let version = "";
    while (!this.abort.signal.aborted) {
      try {
        if (version === "") version = await this.#list();
        this.handler.state("live");
        version = await this.#watch(version);
        pause = FIRST_PAUSE_MS;
      } catch (error) {
        if (this.abort.signal.aborted) return;
        if (error instanceof ApiError && error.code === 410) {
          version = "";
          continue;
        }
        if (error instanceof ApiError && [401, 403, 404].includes(error.code)) {
          this.handler.state("refused", error);
          return;
        }
        this.handler.state("reconnecting", error);
        await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random())));
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }

  async #list() {
    const keys = new Set();
    let token = "";
    for (;;) {
      const query = { ...this.query, limit: String(PAGE), ...(token && { continue: token }) };
      const page = await get(this.path, query, this.abort.signal);
      for (const item of page.items) keys.add(keyOf(item));
      this.handler.add(page.items);
      token = page.metadata.continue ?? "";
      if (!token) {
        this.handler.listed(keys);
        return page.metadata.resourceVersion;
      }
      await nextTask();
    }
  }

  /** Returns the version to go on from when the server ends the watch. */
  async #watch(version) {
    const query = { ...this.query, watch: "1", resourceVersion: version, allowWatchBookmarks: "true" };
    const address = url(this.path, { ...query, timeoutSeconds: String(WATCH_SECONDS) });
    const response = await fetch(address, { signal: this.abort.signal });
    if (!response.ok || !response.body) await document(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return version;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      const changed = [];
      for (const line of lines) {
        if (!line) continue;
        const { type, object } = JSON.parse(line);
        if (type === "ERROR") throw new ApiError(object.code, object);
        version = object.metadata.resourceVersion;
        if (type === "DELETED") {
          this.handler.add(changed.splice(0));
          this.handler.remove(object);
        } else if (type !== "BOOKMARK") changed.push(object);
      }
      if (changed.length) this.handler.add(changed);
    }
  }
}

export function keyOf(object) {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}

/** Lets the browser draw and answer input before long work goes on. */
export function nextTask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(undefined);
    port2.postMessage(null);
  });
}

function url(path, query) {
  const text = new URLSearchParams(query).toString();
  return text ? `${path}?${text}` : path;
}

async function document(response) {
  const text = await response.text();
  let parsed = null;
  try {
    parsed = JSON.parse(text);
  } catch {
    // an answer that is no JSON is shown by its code
  }
  if (!response.ok) throw new ApiError(response.status, parsed);
  return parsed;
}

/** The texts of a Warning header: 299 - "text". */
function warnings(header) {
  return [...header.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map((found) => found[1].replaceAll(/\\(.)/g, "$1"));
}
