"""Random RBAC rules, of which about half almost match."""

from __future__ import annotations

import random
from collections.abc import Sequence

from registry.rbac.role_index import RbacRule


def random_rule(rng: random.Random, names: Sequence[str]) -> RbacRule:
    """Returns a rule that may concern tenants or namespaces, and may name some of `names`."""
    return RbacRule(
        verbs=rng.choice([("get",), ("get",), ("list", "watch"), ("*",), ("get", "update"), ("GET",)]),
        groups=rng.choice([("apps.cozystack.io",), ("",), ("*",), ("", "apps.cozystack.io"), ("*",), ("apps",)]),
        resources=rng.choice(
            [
                ("tenants",),
                ("namespaces",),
                ("*",),
                ("tenants/status",),
                ("*/status",),
                ("pods", "tenants"),
                ("tenant",),
            ]
        ),
        names=rng.choice([(), (), (), (rng.choice(names),), (rng.choice(names), "x")]),
    )
