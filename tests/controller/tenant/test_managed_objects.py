"""Digests of objects that the controllers manage."""

from __future__ import annotations

from itertools import product

import pytest

from controller.tenant.helm_ownership import ObjectManager
from controller.tenant.managed_objects import ObjectDigest

_EXTREMES = (-(2**61), -1, 0, 1, 2**61 - 1)


@pytest.mark.parametrize(("manager", "digest"), tuple(product(ObjectManager, _EXTREMES)))
def test_a_digest_and_its_manager_fit_into_a_signed_number_of_64_bits(manager: ObjectManager, digest: int) -> None:
    found = ObjectDigest(manager, digest)
    assert ObjectDigest.unpack(found.packed) == found
    assert -(2**63) <= found.packed < 2**63
