"""The Resource of SecurityGroups: names, schema and columns. Data only."""

from __future__ import annotations

from apiserver.meta.resource import Resource, Schema
from registry.securitygroup.convert import GROUP, KIND, PLURAL, VERSION, default_group


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


def _object(description: str, **properties: Schema) -> Schema:
    return {"type": "object", "description": description, "properties": properties}


_APPLICATION: Schema = {
    **_object(
        "An application of the namespace.",
        apiGroup=_text("Its API group, apps.cozystack.io by default."),
        kind=_text("Its kind, such as Postgres."),
        name=_text("Its name."),
    ),
}
_PORTS = _list(
    _object(
        "Ports that the rule is limited to.",
        ports=_list(
            _object(
                "A port with its protocol.",
                port=_text("A number from 1 to 65535, or the name of a port. Every port by default."),
                protocol=_text("TCP, UDP, SCTP or ANY, which is the default."),
            ),
            "The ports.",
        ),
    ),
    "The ports that the rule is limited to. Every port by default.",
)
_NAME = _text("The name of a SecurityGroup of the namespace.")
_NETWORK = _text("A network such as 10.0.0.0/8, or an IP address.")
_FQDN = _object(
    "Names in DNS.",
    matchName=_text("A domain name."),
    matchPattern=_text("A pattern of domain names, in which * stands for any characters of one label."),
)
_SPEC = _object(
    "The members of the group, and the traffic that it allows.",
    attachments=_list(_APPLICATION, "The applications whose Pods are members. Without any, the group has no Pods."),
    ingress=_list(
        _object(
            "Traffic that members accept.",
            fromApp=_list(_APPLICATION, "The applications that it comes from."),
            fromSG=_list(_NAME, "The groups whose members it comes from."),
            fromCIDR=_list(_NETWORK, "The networks that it comes from."),
            toPorts=_PORTS,
        ),
        "What members accept. Without any rule, they accept nothing.",
    ),
    egress=_list(
        _object(
            "Traffic that members send.",
            toApp=_list(_APPLICATION, "The applications that it goes to."),
            toSG=_list(_NAME, "The groups whose members it goes to."),
            toCIDR=_list(_NETWORK, "The networks that it goes to."),
            toFQDNs=_list(_FQDN, "The names in DNS that it goes to."),
            toPorts=_PORTS,
        ),
        "What members send. An empty list denies everything; without the field, the group does not limit it.",
    ),
)


def security_group_resource() -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural=PLURAL,
        singular="securitygroup",
        namespaced=True,
        description="SecurityGroup is a set of applications of one namespace, and the traffic that it allows for them.",
        properties={"spec": _SPEC},
        default=default_group,
    )
