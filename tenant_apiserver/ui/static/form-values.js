/** A Tenant as the form has it, the patch of what was changed, and the fields that errors belong to. Pure. */

import { visible } from "./format.js";

export const SWITCHES = ["gateway", "ingress", "etcd", "monitoring", "seaweedfs", "computeplane"];
const TEXTS = ["host", "schedulingClass"];

/**
 * @typedef {object} Values
 * @property {string} name
 * @property {string} host
 * @property {string} schedulingClass
 * @property {Record<string, boolean>} switches
 * @property {[string, string][]} quotas resource and quantity, in the order of the form
 */

/** @param {any} [tenant] @returns {Values} */
export function valuesOf(tenant) {
  const spec = tenant?.spec ?? {};
  return {
    name: tenant?.metadata?.name ?? "",
    host: spec.host ?? "",
    schedulingClass: spec.schedulingClass ?? "",
    switches: Object.fromEntries(SWITCHES.map((name) => [name, spec[name] === true])),
    quotas: Object.entries(spec.resourceQuotas ?? {}).map(([resource, value]) => [resource, String(value)]),
  };
}

/** A new Tenant, of what is filled in. @param {Values} values @param {string} namespace */
export function newTenant(values, namespace) {
  const spec = specPatch(valuesOf(), values);
  return { apiVersion: "apps.cozystack.io/v1alpha1", kind: "Tenant", metadata: { name: values.name, namespace }, spec };
}

/**
 * A JSON merge patch of what differs; undefined if nothing does. It has the resourceVersion of the Tenant that was
 * edited, so that the change of another is not overwritten unseen.
 * @param {any} tenant @param {Values} values
 */
export function patchOf(tenant, values) {
  const spec = specPatch(valuesOf(tenant), values);
  if (!Object.keys(spec).length) return undefined;
  return { metadata: { resourceVersion: tenant.metadata.resourceVersion }, spec };
}

/**
 * What a user has changed since `before`, on top of `newer`: what was not changed is taken from there.
 * @param {Values} before @param {Values} newer @param {Values} typed
 * @returns {Values}
 */
export function rebased(before, newer, typed) {
  const choose = (/** @type {any} */ old, /** @type {any} */ theirs, /** @type {any} */ mine) => (mine === old ? theirs : mine);
  const [old, theirs, mine] = [before, newer, typed].map((each) => new Map(each.quotas));
  const resources = new Set([...theirs.keys(), ...mine.keys()]);
  return {
    name: newer.name,
    host: choose(before.host, newer.host, typed.host),
    schedulingClass: choose(before.schedulingClass, newer.schedulingClass, typed.schedulingClass),
    switches: Object.fromEntries(SWITCHES.map((name) => [name, choose(before.switches[name], newer.switches[name], typed.switches[name])])),
    quotas: [...resources].map((key) => [key, choose(old.get(key), theirs.get(key), mine.get(key))])
      .filter(([, value]) => value !== undefined),
  };
}

/** @param {Values} before @param {Values} after @returns {Record<string, any>} */
function specPatch(before, after) {
  /** @type {Record<string, any>} */ const spec = {};
  for (const name of TEXTS) {
    const key = /** @type {"host" | "schedulingClass"} */ (name);
    if (before[key] !== after[key]) spec[key] = after[key];
  }
  for (const name of SWITCHES) if (before.switches[name] !== after.switches[name]) spec[name] = after.switches[name];
  const old = new Map(before.quotas);
  const quotas = new Map(after.quotas.filter(([resource, value]) => resource || value));
  /** @type {Record<string, string | null>} */ const changed = {};
  for (const [resource, value] of quotas) if (old.get(resource) !== value) changed[resource] = value;
  for (const resource of old.keys()) if (!quotas.has(resource)) changed[resource] = null;
  if (Object.keys(changed).length) spec.resourceQuotas = changed;
  return spec;
}

/**
 * The inputs that causes of a Status belong to: `name`, `host`, `schedulingClass`, a switch, `quota:RESOURCE` or `quotas`;
 * and what belongs to none.
 * @param {{field?: string, message?: string}[]} causes
 * @param {string} message of the Status
 * @param {readonly string[]} resources those of the form
 * @returns {{fields: Map<string, string>, rest: string[]}}
 */
export function placeErrors(causes, message, resources) {
  /** @type {Map<string, string>} */ const fields = new Map();
  const rest = [];
  for (const cause of causes) {
    const input = inputOf(cause.field ?? "", resources);
    const text = withoutPrefix(cause.message ?? "");
    if (input) fields.set(input, [fields.get(input), text].filter(Boolean).join("; "));
    else rest.push(cause.field ? `${visible(cause.field)}: ${text}` : text);
  }
  return { fields, rest: causes.length ? rest : [message] };
}

/** @param {string} field @param {readonly string[]} resources */
function inputOf(field, resources) {
  if (field === "metadata.name" || field === "metadata.generateName") return "name";
  const [, name, rest = ""] = /^spec\.([A-Za-z]+)(.*)$/.exec(field) ?? [];
  if (name !== "resourceQuotas") return TEXTS.includes(name) || SWITCHES.includes(name) ? name : "";
  const resource = rest.replace(/^[.[]|\]$/g, "").replace(/^["']|["']$/g, "");
  return resources.includes(resource) ? `quota:${resource}` : "quotas";
}

/** The kind of an error says nothing to people: "Invalid value: \"x\": must be…". @param {string} message */
function withoutPrefix(message) {
  const text = message.replace(/^(Forbidden|Invalid value|Required value|Duplicate value|Unsupported value): /, "").replace(/^"(?:[^"\\]|\\.)*": /, "");
  // a path of fields is no sentence
  if (/^[\w-]+\.\w/.test(text)) return text;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
