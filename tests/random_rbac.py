"""Rules as chance gives them: near misses as often as hits."""

from __future__ import annotations

import random
from collections.abc import Sequence

from registry.rbac.role_index import RbacRule


def random_rule(rng: random.Random, places: Sequence[str]) -> RbacRule:
    """A rule that may be about tenants or namespaces, and may name some of `places`."""
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
        names=rng.choice([(), (), (), (rng.choice(places),), (rng.choice(places), "x")]),
    )
