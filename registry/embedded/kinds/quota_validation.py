"""Defaulting and validation of ResourceQuotas and LimitRanges: canonical quantities, known resource names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from registry import quantity
from registry.embedded.kinds.kind import NoValidation
from registry.quota_names import is_whole, quota_name_errors, whole_errors

LIMIT_MAPS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
"""The fields of an element of spec.limits that hold quantities."""


class ResourceQuotaValidation(NoValidation):
    def default(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        if spec.get("hard"):
            obj["spec"] = {**spec, "hard": _canonical(spec["hard"])}

    def validate(self, obj: Object) -> list[FieldError]:
        hard = (obj.get("spec") or {}).get("hard") or {}
        names = [problem for key in hard for problem in _name_errors(key, f"spec.hard[{key}]")]
        problems = _quantity_errors("spec.hard", hard) or _negative_errors("spec.hard", hard)
        return names + (problems or _count_errors("spec.hard", hard))


class LimitRangeValidation(NoValidation):
    def default(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        if spec.get("limits"):
            limits = [
                {name: _canonical(value) if name in LIMIT_MAPS else value for name, value in limit.items()}
                for limit in spec["limits"]
            ]
            obj["spec"] = {**spec, "limits": limits}

    def validate(self, obj: Object) -> list[FieldError]:
        limits = (obj.get("spec") or {}).get("limits") or []
        return [
            problem
            for index, limit in enumerate(limits)
            for name in LIMIT_MAPS
            for problem in _quantity_errors(f"spec.limits[{index}].{name}", limit.get(name) or {})
        ]


def _name_errors(key: str, path: str) -> list[FieldError]:
    return [errors.invalid(path, key, why) for why in quota_name_errors(key)]


def _canonical(quantities: Any) -> Any:
    """Returns the quantities in canonical form, in whole thousandths. Invalid quantities stay as they are: validation
    reports them."""
    return {key: value if _quantity_error(value) else quantity.canonical(value) for key, value in quantities.items()}


def _quantity_errors(path: str, quantities: Mapping[str, Any]) -> list[FieldError]:
    found = ((key, value, _quantity_error(value)) for key, value in quantities.items())
    return [errors.invalid(f"{path}[{key}]", value, why) for key, value, why in found if why]


def _negative_errors(path: str, quantities: Mapping[str, Any]) -> list[FieldError]:
    why = "must be greater than or equal to 0"
    return [errors.invalid(f"{path}[{k}]", each, why) for k, each in quantities.items() if quantity.parse(each) < 0]


def _count_errors(path: str, quantities: Mapping[str, Any]) -> list[FieldError]:
    counts = {key: value for key, value in quantities.items() if is_whole(key)}
    wrong = {key: value for key, value in counts.items() if whole_errors(quantity.parse(value))}
    return [errors.invalid(f"{path}[{key}]", value, "must be an integer") for key, value in wrong.items()]


def _quantity_error(value: str | int) -> str:
    try:
        quantity.parse_bounded(value)
    except ValueError as error:
        return str(error)
    return ""
