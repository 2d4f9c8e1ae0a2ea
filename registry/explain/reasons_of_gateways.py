"""The rule behind each reason that a TenantGateway, a listener or a route can have. Data only."""

from __future__ import annotations

from collections.abc import Mapping

from registry.explain.rule import Rule

_STATUS, _DELEGATION = "gateways.md", "delegation.md#what-the-status-tells"
_OTHER, _MANY = "troubleshooting.md#readyfalse-another-reason", "gateways.md#more-than-64-listeners"
_REFERENCES = "gateways.md#references-to-other-namespaces"
_CONFLICT = "troubleshooting.md#a-route-is-rejected-hostnameconflict"

REASONS_OF_GATEWAYS: Mapping[str, Rule] = {
    "Accepted": Rule("The Gateway may use all hostnames of the route.", _STATUS),
    "Programmed": Rule("The Gateway's controller has configured it.", _OTHER),
    "ResolvedRefs": Rule("References to other namespaces have the consent of their owners.", _REFERENCES),
    "Conflicted": Rule(
        "Two listeners of one port have different hostnames.", _OTHER, "remove one of the two listeners"
    ),
    # TenantGateways
    "ReconcileError": Rule(
        "An object that cannot be written keeps the Gateway as it was.",
        "troubleshooting.md#readyfalse-reconcileerror",
        "do what the message says",
    ),
    "NamespaceNotAllowed": Rule(
        "Only namespaces of tenants, and those that the platform lists, own TenantGateways.",
        "troubleshooting.md#readyfalse-namespacenotallowed",
        "add the namespace to gateway.ownerNamespaces of the platform settings, or delete the TenantGateway",
    ),
    "GatewayNotAccepted": Rule(
        "The controller of its GatewayClass accepts a Gateway.",
        _OTHER,
        "do what the message says, or ask a platform administrator to look at the conditions of the Gateway",
    ),
    "GatewayNotProgrammed": Rule(
        "The controller of the GatewayClass programs the Gateway.",
        _OTHER,
        "look at the conditions of the Gateway, and at the address pool of its load balancer",
    ),
    "ListenersNotReady": Rule(
        "A Gateway is ready when its listeners are.", _OTHER, "look at the listeners in the status of the TenantGateway"
    ),
    "CertificatesNotReady": Rule(
        "A Gateway is ready when its shared certificates are.",
        _OTHER,
        "kubectl describe certificate and challenge in the namespace of the Gateway",
    ),
    "CertificatesPending": Rule(
        "From one certMode to another, a hostname keeps its certificate until the one that replaces it is ready.",
        _STATUS,
        "wait; if it lasts, kubectl describe certificate and challenge in the namespace of the Gateway",
    ),
    "CertificateNotReady": Rule(
        "A listener is ready when its certificate is issued.",
        _OTHER,
        "let the DNS name of the hostname point to the Gateway; kubectl describe certificate names what is missing",
    ),
    "InvalidCertificateRef": Rule(
        "A listener needs a Secret with a certificate.", _STATUS, "create the Secret, or correct wildcardSecretRef"
    ),
    "SecretNotConfirmed": Rule(
        "A new wildcard Secret replaces the one before when the Gateway's controller has accepted it.",
        _STATUS,
        "wait; if it lasts, check that the Secret has a certificate for the domain",
    ),
    "SecretMissing": Rule(
        "With certMode existingSecret somebody else brings the certificate.", _STATUS, "create the Secret"
    ),
    "NotInCertificate": Rule(
        "With certMode existingSecret a hostname must be in the certificate.",
        _STATUS,
        "use a hostname that the certificate has, or bring one that has it",
    ),
    "TooManyListeners": Rule(
        "A Gateway has at most 64 listeners.", _MANY, "install ListenerSets, or use fewer hostnames"
    ),
    "ListenersTruncated": Rule(
        "A Gateway has at most 64 listeners.", _MANY, "install ListenerSets, or use fewer hostnames"
    ),
    "CertificateFull": Rule(
        "One certificate has a limited number of hostnames.", _MANY, "use fewer hostnames, or another certMode"
    ),
    "NotRendered": Rule(
        "Hostnames that the Gateway may not serve are left out.", _STATUS, "look at the status of the routes named"
    ),
    "HostnamesLeftOut": Rule(
        "Hostnames that the Gateway may not serve are left out.", _STATUS, "look at the status of the routes named"
    ),
    "OtherGateway": Rule(
        "A namespace is attached to one Gateway.", _STATUS, "remove the namespace from one of the two TenantGateways"
    ),
    "AttachedElsewhere": Rule(
        "A namespace is attached to one Gateway.", _STATUS, "remove the namespace from one of the two TenantGateways"
    ),
    "PlatformNamespace": Rule(
        "Namespaces of the platform attach to the Gateway of the publishing tenant alone.",
        _STATUS,
        "remove the namespace from attachedNamespaces",
    ),
    "NoSectionName": Rule(
        "A route that names neither a sectionName nor port 443 is served on port 80, too.",
        _STATUS,
        "name the sectionName or port 443 in the route's parentRef",
    ),
    "PlaintextRoutes": Rule(
        "A route that names neither a sectionName nor port 443 is served on port 80, too.",
        _STATUS,
        "name the sectionName or port 443 in the route's parentRef",
    ),
    # routes
    "UnsupportedValue": Rule(
        "A hostname is a DNS name that a certificate can have.", _STATUS, "correct the hostname that the message names"
    ),
    "NoMatchingListenerHostname": Rule(
        "A namespace uses hostnames of its own domain, on the Gateway of that domain.",
        _STATUS,
        "replace each hostname that the message names with one below the domain of the tenant",
    ),
    "NoMatchingParent": Rule(
        "A route attaches to a listener that exists.",
        _STATUS,
        "leave out sectionName and port in the parentRef, or name the ListenerSet that has the hostname",
    ),
    "NotAllowedByListeners": Rule(
        "A Gateway admits routes of its own namespace, of those that inherit it and of those that it lists.",
        "troubleshooting.md#a-childs-route-is-not-accepted-on-its-ancestors-gateway",
        "name the Gateway that serves the namespace in the parentRef",
    ),
    "Orphaned": Rule(
        "A route names a Gateway, or a route that delegates to it, that exists.",
        _STATUS,
        "correct the parentRef, or have the parent created",
    ),
    "HostnameConflict": Rule(
        "Of several routes with a hostname, those of cozy-* namespaces win, then that with the smallest namespace and "
        "name.",
        _CONFLICT,
        "use another hostname, or remove it from the route that has it",
    ),
    "QuotaExceeded": Rule(
        "A tenant has a limited number of hostnames on the Gateway of an ancestor.",
        "troubleshooting.md#a-route-is-rejected-quotaexceeded",
        "remove hostnames, raise the quota count/certificates.cert-manager.io, or set spec.gateway: true",
    ),
    "RefNotPermitted": Rule(
        "The owner of a namespace consents to references from others by a ReferenceGrant.",
        _REFERENCES,
        "have the ReferenceGrant created that the message names",
    ),
    "BackendNotFound": Rule(
        "What a route refers to exists.", _DELEGATION, "create the object that the message names, or correct the route"
    ),
    "DelegationConflict": Rule(
        "A part of a hostname is given to one route.", _DELEGATION, "delegate it to one of the two routes only"
    ),
    "DelegationCycle": Rule(
        "A delegation begins at a route on a Gateway.", _DELEGATION, "let a route on a Gateway delegate to the route"
    ),
    "OutsideDelegation": Rule(
        "A route uses the part of a hostname that was given to it.",
        _DELEGATION,
        "correct the match or the reference that the message names",
    ),
    "Connected": Rule("The delegation is served.", _DELEGATION),
}
