"""The cells of each kind's table rows, as kubectl shows them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.encoding.encoded_object import epoch
from apiserver.meta.resource import Age, Object

_NONE = "<none>"


def condition(obj: Object, type_: str, field: str = "status") -> str:
    """Returns a field of the condition of this type, empty if there is no such condition."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each.get("type") == type_:
            return str(each.get(field, ""))
    return ""


def joined(values: Any) -> str:
    return ",".join(str(value) for value in values or ()) or _NONE


def namespace(obj: Object) -> Sequence[object]:
    return [(obj.get("status") or {}).get("phase", "")]


def secret(obj: Object) -> Sequence[object]:
    return [obj.get("type", ""), len(obj.get("data") or {})]


def configmap(obj: Object) -> Sequence[object]:
    return [len(obj.get("data") or {}) + len(obj.get("binaryData") or {})]


def service(obj: Object) -> Sequence[object]:
    spec = obj.get("spec") or {}
    ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    external = [*(spec.get("externalIPs") or ()), *(each.get("ip") or each.get("hostname", "") for each in ingress)]
    if spec.get("type") == "ExternalName":
        external = [spec.get("externalName", "")]
    elif spec.get("type") == "LoadBalancer" and not external:
        external = ["<pending>"]
    ports = [f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or ()]
    selector = [f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items())]
    address = spec.get("clusterIP") or _NONE
    return [spec.get("type", ""), address, joined(external), joined(ports), joined(selector)]


def created_at(obj: Object) -> Sequence[object]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp", "")]


def event(obj: Object) -> Sequence[object]:
    """Returns the cells of a core/v1 Event."""
    involved, series = obj.get("involvedObject") or {}, obj.get("series") or {}
    subject = "/".join(part for part in (str(involved.get("kind", "")).lower(), involved.get("name", "")) if part)
    first = epoch(obj.get("firstTimestamp")) or epoch(obj.get("eventTime"))
    last = epoch(series.get("lastObservedTime")) or epoch(obj.get("lastTimestamp")) or first
    return [
        Age(last),
        obj.get("type", ""),
        obj.get("reason", ""),
        subject,
        involved.get("fieldPath", ""),
        _source(obj),
        str(obj.get("message", "")).strip(),
        Age(first),
        series.get("count") or obj.get("count") or 1,
        obj["metadata"].get("name", ""),
    ]


def _source(obj: Object) -> str:
    source = obj.get("source") or {}
    names = [source.get("component", ""), source.get("host", "")]
    if not names[0]:
        names = [obj.get("reportingComponent", ""), obj.get("reportingInstance", "")]
    return ", ".join(name for name in names if name)


def resourcequota(obj: Object) -> Sequence[object]:
    status = obj.get("status") or {}
    hard = status.get("hard") or (obj.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    texts = {key: f"{key}: {used.get(key, 0)}/{value}" for key, value in sorted(hard.items())}
    limits = [text for key, text in texts.items() if key.startswith("limits.")]
    requests = [text for key, text in texts.items() if not key.startswith("limits.")]
    return [", ".join(requests), ", ".join(limits)]


def binding(obj: Object) -> Sequence[object]:
    role = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.setdefault(subject.get("kind", ""), []).append(name)
    shown = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [f"{role.get('kind', '')}/{role.get('name', '')}", *shown]


def lease(obj: Object) -> Sequence[object]:
    return [(obj.get("spec") or {}).get("holderIdentity", "")]


def webhooks(obj: Object) -> Sequence[object]:
    return [len(obj.get("webhooks") or ())]


def admissionpolicy(obj: Object) -> Sequence[object]:
    spec = obj.get("spec") or {}
    parameter = spec.get("paramKind") or {}
    kind = f"{parameter.get('apiVersion', '')}/{parameter.get('kind', '')}" if parameter else "<unset>"
    return [len(spec.get("validations") or ()), kind]


def admissionpolicybinding(obj: Object) -> Sequence[object]:
    spec = obj.get("spec") or {}
    reference = spec.get("paramRef") or {}
    name = "/".join(part for part in (reference.get("namespace", ""), reference.get("name", "")) if part)
    return [spec.get("policyName", ""), name or ("*" if "selector" in reference else "<unset>")]


def apiservice(obj: Object) -> Sequence[object]:
    reference = (obj.get("spec") or {}).get("service") or {}
    name = f"{reference.get('namespace')}/{reference.get('name')}" if reference else "Local"
    available = condition(obj, "Available") or "Unknown"
    reason = condition(obj, "Available", "reason")
    return [name, f"{available} ({reason})" if reason and available != "True" else available]


def networkpolicy(obj: Object) -> Sequence[object]:
    selector = (obj.get("spec") or {}).get("podSelector") or {}
    equal = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return [joined([*equal, *(_expression(each) for each in selector.get("matchExpressions") or ())])]


def ingress(obj: Object) -> Sequence[object]:
    spec = obj.get("spec") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    served = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = [each.get("ip") or each.get("hostname") or "" for each in served]
    ports = "80, 443" if spec.get("tls") else "80"
    return [spec.get("ingressClassName", "<none>"), ",".join(hosts) or "*", ",".join(addresses), ports]


def _expression(requirement: Any) -> str:
    """A requirement of a selector, as in the query of a request."""
    key, values = str(requirement.get("key", "")), ",".join(sorted(requirement.get("values") or ()))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return forms.get(requirement.get("operator", ""), key)
