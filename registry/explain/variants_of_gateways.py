"""The rules of reasons that have several causes, by the reason and a text of its message. Data only.

Where a message has the texts of several, because it tells of several hostnames, the first decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from registry.explain.reasons_of_gateways import REASONS_OF_GATEWAYS
from registry.explain.rule import Rule

_STATUS, _DELEGATION = "gateways.md", "delegation.md#what-the-status-tells"
_OTHER, _MANY = "troubleshooting.md#readyfalse-another-reason", "gateways.md#more-than-64-listeners"
_SETTINGS, _RULES = "settings.md", "delegation.md#the-rules"
_OTHER_KINDS, _QUOTA = "delegation.md#grpcroutes-and-tlsroutes", "troubleshooting.md#a-route-is-rejected-quotaexceeded"

_CONTENT = "The rules of a delegated route have nothing that would mean something else in the namespace of the root."
_PASSTHROUGH = "A TLSRoute uses hostnames of the TLS passthrough listeners of the Gateway."
_PORT_80 = "On port 80 a Gateway admits HTTPRoutes of its own namespace only."
_EXISTS = "A route names a Gateway, or a route that delegates to it, that exists."
_BOTH_SIDES = "Both sides of a delegation agree."
_MORE_LISTENERS = Rule(
    "A Gateway has at most 64 listeners.",
    _MANY,
    "ask a platform administrator to set gateway.listenerSets: auto in the platform settings, or use fewer hostnames",
)

_OF_LISTENERS: Mapping[tuple[str, str], Rule] = {
    ("GatewayNotAccepted", "Pending"): Rule(
        "The controller of its GatewayClass accepts a Gateway.",
        _OTHER,
        "ask a platform administrator to install the controller of its GatewayClass, or to name another class in "
        "gateway.gatewayClassName of the platform settings",
    ),
    ("ListenersTruncated", "set gateway.listenerSets"): _MORE_LISTENERS,
    ("TooManyListeners", "set gateway.listenerSets"): _MORE_LISTENERS,
    ("SecretMissing", "metadata.name is too long"): Rule(
        "A Secret with the certificate has the name of the TenantGateway in its own.",
        _STATUS,
        "create the TenantGateway under a shorter name",
    ),
    ("SecretMissing", "must name a Secret"): Rule(
        "With certMode existingSecret somebody else brings the certificate.",
        _STATUS,
        "set spec.wildcardSecretRef.name of the TenantGateway",
    ),
    ("SecretNotConfirmed", "remove a hostname"): Rule(
        "A new wildcard Secret replaces the one before when a listener could use it.", _STATUS, "remove a hostname"
    ),
    ("QuotaExceeded", "gateway.hostnamesPerHeir"): Rule(
        "A tenant that declares no quota of hostnames has that of the platform settings.",
        _QUOTA,
        "remove hostnames, declare the quota count/certificates.cert-manager.io, or set spec.gateway: true",
    ),
    ("QuotaExceeded", "of a tenant above its own"): Rule(
        "The hostnames of a tenant count for those above it, too.",
        _QUOTA,
        "remove hostnames, ask for a larger quota count/certificates.cert-manager.io of the tenant above, or set "
        "spec.gateway: true",
    ),
}
_OF_HOSTNAMES: Mapping[tuple[str, str], Rule] = {
    ("UnsupportedValue", " delegates"): Rule(
        "A rule delegates or serves.", _RULES, "correct the rule that the message names"
    ),
    ("UnsupportedValue", "use certMode dns01"): Rule(
        "HTTP-01 issues no certificate for a wildcard.",
        _STATUS,
        "list the hostnames instead of the wildcard, or use certMode dns01",
    ),
    ("UnsupportedValue", "list the hostname itself"): Rule(
        "A TLS passthrough listener serves exactly one hostname.", _STATUS, "list the hostname instead of the wildcard"
    ),
    ("UnsupportedValue", "needs a Certificate named"): Rule(
        "The Certificate of a hostname has the hostname in its name.", _STATUS, "use a shorter hostname"
    ),
    ("NoMatchingListenerHostname", "the domain of this gateway"): Rule(
        "A Gateway serves hostnames of its own domain.",
        _STATUS,
        "use a hostname below the domain of the Gateway, or set spec.gateway: true on the tenant whose domain it is in",
    ),
    ("NoMatchingListenerHostname", "has no host"): Rule(
        "A namespace uses hostnames of its own domain.", _STATUS, "set spec.host of the tenant"
    ),
    ("NoMatchingListenerHostname", "must have hostnames"): Rule(
        "A route that refers to a TenantGateway says which hostnames it is about.",
        _DELEGATION,
        "list the hostnames in spec.hostnames of the route",
    ),
    ("NoMatchingListenerHostname", "to gateway.tlsPassthroughServices"): Rule(
        _PASSTHROUGH,
        _OTHER_KINDS,
        "ask a platform administrator to add the name to gateway.tlsPassthroughServices of the platform settings",
    ),
    ("NoMatchingListenerHostname", "in spec.tlsPassthroughServices"): Rule(
        _PASSTHROUGH, _OTHER_KINDS, "list the name in spec.tlsPassthroughServices of the TenantGateway"
    ),
    ("HostnameConflict", "TLS passthrough listener"): Rule(
        "A hostname of tlsPassthroughServices of a TenantGateway is for TLSRoutes.",
        _STATUS,
        "attach a TLSRoute with this hostname instead, or use another hostname",
    ),
    ("HostnameConflict", "choose other paths"): Rule(
        "HTTPRoutes of the platform share a hostname if their paths do not overlap.",
        _STATUS,
        "use other paths",
    ),
    ("HostnameConflict", "needs the listener name"): Rule(
        "Each hostname has a listener with a name of its own.", _STATUS, "use another hostname"
    ),
}
_OF_PARENTS: Mapping[tuple[str, str], Rule] = {
    ("NoMatchingParent", "omit sectionName and port"): Rule(
        "A route attaches to a listener that exists.", _STATUS, "leave out sectionName and port in the parentRef"
    ),
    ("NoMatchingParent", "add a parentRef"): Rule(
        "A route names the Gateway or ListenerSet that has the listener of its hostname.",
        _MANY,
        "add the parentRef that the message names",
    ),
    ("NoMatchingParent", "set its group to gateway.cozystack.io"): Rule(
        "Gateway API, whose group is the default of a parentRef, has no TenantGateways.",
        _DELEGATION,
        "set group: gateway.cozystack.io in the parentRef",
    ),
    ("NotAllowedByListeners", "admits no GRPCRoutes"): Rule(
        "Gateways admit GRPCRoutes if gateway.grpcRoutes of the platform settings is true.",
        _SETTINGS,
        "ask a platform administrator to set gateway.grpcRoutes: true in the platform settings",
    ),
    ("NotAllowedByListeners", "on port 80"): Rule(_PORT_80, _STATUS, "name port 443 in the parentRef"),
    ("NotAllowedByListeners", "names another, or is missing"): Rule(
        "A TenantGateway admits routes of its own namespace, of those that inherit it and of those that it lists.",
        "troubleshooting.md#a-childs-route-is-not-accepted-on-its-ancestors-gateway",
        "name the TenantGateway that serves the namespace in the parentRef",
    ),
    ("NotAllowedByListeners", " is missing"): Rule(
        "No Gateway admits routes of a namespace without its label.",
        "troubleshooting.md#a-childs-route-is-not-accepted-on-its-ancestors-gateway",
        "set spec.gateway: true on the tenant or on one above it; a platform administrator can add other namespaces to "
        "gateway.attachedNamespaces of the platform settings",
    ),
    ("Orphaned", "set spec.gateway of its tenant"): Rule(
        _EXISTS, _STATUS, "set spec.gateway: true on the tenant of that namespace, or correct the parentRef"
    ),
    ("Orphaned", "its namespace may own none"): Rule(
        "Only namespaces of tenants, and those that the platform lists, own TenantGateways.",
        "troubleshooting.md#readyfalse-namespacenotallowed",
        "correct the parentRef, or ask a platform administrator to add the namespace to gateway.ownerNamespaces of the "
        "platform settings",
    ),
    ("Orphaned", "the route has no parentRef"): Rule(
        "A route names the Gateways that serve it.",
        _STATUS,
        "add a parentRef with the name and namespace of the Gateway",
    ),
}
_OF_DELEGATION: Mapping[tuple[str, str], Rule] = {
    ("Orphaned", "has no ReferenceGrant"): Rule(
        "The namespace of a delegated route consents by a ReferenceGrant.",
        _RULES,
        "have the ReferenceGrant created that the message names",
    ),
    ("Orphaned", "does not delegate to this route"): Rule(
        _BOTH_SIDES, _RULES, "let a rule of the parent name the route in its backendRefs, or correct the parentRef"
    ),
    ("Orphaned", "does not exist, or does not name"): Rule(
        _BOTH_SIDES, _RULES, "let the route name the other one in its parentRefs"
    ),
    ("Orphaned", "its rules are invalid"): Rule(
        "A rule delegates or serves.", _RULES, "have the rules of the parent corrected; its status says which"
    ),
    ("Orphaned", "no hostname is delegated to it"): Rule(
        "A delegation begins at a route on a Gateway that is served.",
        _RULES,
        "have the parent served; its status says what it lacks",
    ),
    ("BackendNotFound", "does not exist, or does not name"): Rule(
        _BOTH_SIDES, _RULES, "have the route created, or let it name the other one in its parentRefs"
    ),
    ("OutsideDelegation", "delegations lead to this route"): Rule(
        "A delegation has eight steps at most.", _RULES, "delegate to the route from one that is nearer to the root"
    ),
    ("OutsideDelegation", "has no hostnames"): Rule(
        "The hostnames of a delegated route are those of its root.", _RULES, "remove spec.hostnames of the route"
    ),
    ("OutsideDelegation", "lists the hostnames that it gets"): Rule(
        "A TLSRoute is given whole hostnames.", _OTHER_KINDS, "list the hostnames in spec.hostnames of the route"
    ),
    ("OutsideDelegation", "is not delegated to"): Rule(
        "A TLSRoute is either on a Gateway, or delegated to.",
        _OTHER_KINDS,
        "remove the parentRef to the TenantGateway, or those to routes",
    ),
    ("OutsideDelegation", "Services of its own namespace only"): Rule(
        _CONTENT, _RULES, "refer to a Service of the route's own namespace"
    ),
    ("OutsideDelegation", "a delegated route may not have"): Rule(
        _CONTENT, _RULES, "remove the field or filter that the message names"
    ),
    ("OutsideDelegation", " matches "): Rule(
        "A delegated route has matches that lie below another for certain.",
        _RULES,
        "correct the match that the message names",
    ),
    ("OutsideDelegation", " delegates"): Rule(
        "A rule delegates or serves.", _RULES, "correct the rule that the message names"
    ),
    ("OutsideDelegation", "as its own status says"): Rule(
        _CONTENT, _RULES, "have the rules of the delegated route corrected"
    ),
}

VARIANTS_OF_GATEWAYS: Mapping[tuple[str, str], Rule] = {
    **_OF_LISTENERS,
    **_OF_HOSTNAMES,
    **_OF_PARENTS,
    **_OF_DELEGATION,
}
"""By the reason and a text of its message."""

OF_FLAT_ROUTES: Mapping[str, Rule] = {
    " does not accept it: ": Rule(
        "A delegated part is served if the Gateway's controller accepts its flat route.",
        _DELEGATION,
        "look at the conditions of the flat route in the namespace of the root",
    ),
    ": the Gateway does not serve it: ": Rule(
        "A delegated part is served if its hostname is.",
        _DELEGATION,
        "ask the owner of the hostname; the status of the root says what it lacks",
    ),
    "the route that the Gateway would serve cannot be written": Rule(
        "A delegated part is served by a flat route in the namespace of the root.",
        _DELEGATION,
        "ask the owner of the hostname; the status of the root says what is in the way",
    ),
}
"""By a text of the message, whatever the reason: that of another object, which the route is not to be corrected for."""

OF_ANOTHER_PARENT: Set[str] = frozenset(
    {
        REASONS_OF_GATEWAYS["Orphaned"].remedy,
        REASONS_OF_GATEWAYS["NotAllowedByListeners"].remedy,
        VARIANTS_OF_GATEWAYS["Orphaned", "set spec.gateway of its tenant"].remedy,
        VARIANTS_OF_GATEWAYS["NotAllowedByListeners", "names another, or is missing"].remedy,
    }
)
"""Remedies by which a route names another Gateway or TenantGateway, if one is known that serves its namespace."""
