/** Follows a list of the API, as an informer does: lists, watches from there, and lists again where it must. */

import { ApiError, list, watch } from "./api.js";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
const GONE = 410;

/**
 * @typedef {object} Handlers
 * @property {(items: any[]) => void} onPage a page of a list
 * @property {() => void} onListed a list is complete: items that none of its pages had are gone
 * @property {(type: string, object: any) => void} onEvent ADDED, MODIFIED or DELETED
 * @property {(state: "loading" | "live" | "reconnecting", error?: Error) => void} onState
 */

export class Follower {
  /** @param {string} path @param {Record<string, string>} query @param {Handlers} handlers */
  constructor(path, query, handlers) {
    this._path = path;
    this._query = query;
    this._handlers = handlers;
    this._version = "";
    /** @type {AbortController | undefined} */ this._running = undefined;
  }

  /** Begins, or goes on from where it was stopped. */
  start() {
    if (this._running) return;
    this._running = new AbortController();
    this._follow(this._running.signal);
  }

  /** Closes the connection: a browser has six for all pages of a server. */
  stop() {
    this._running?.abort();
    this._running = undefined;
  }

  /** @param {AbortSignal} signal */
  async _follow(signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this._listIfNeeded(signal);
        await this._watch(signal, () => { failures = 0; });
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.code === GONE) this._version = "";
        failures += 1;
        if (failures > 1 || !(error instanceof ApiError && error.code === GONE)) this._handlers.onState("reconnecting", /** @type {Error} */ (error));
        await pause(backoff(failures), signal);
      }
    }
  }

  /** @param {AbortSignal} signal */
  async _listIfNeeded(signal) {
    if (this._version) return;
    this._handlers.onState("loading");
    const version = await list(this._path, this._query, this._handlers.onPage, signal);
    this._handlers.onListed();
    this._version = version;
  }

  /** @param {AbortSignal} signal @param {() => void} onOpen */
  async _watch(signal, onOpen) {
    const opened = () => {
      onOpen();
      this._handlers.onState("live");
    };
    const onEvent = (/** @type {string} */ type, /** @type {any} */ object) => {
      this._version = object.metadata?.resourceVersion ?? this._version;
      if (type !== "BOOKMARK" && !signal.aborted) this._handlers.onEvent(type, object);
    };
    await watch(this._path, this._query, this._version, { onOpen: opened, onEvent }, signal);
  }
}

/** Doubles from try to try, and varies so that many pages do not return together. @param {number} failures */
export function backoff(failures, random = Math.random()) {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1)) * (0.5 + random / 2);
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
