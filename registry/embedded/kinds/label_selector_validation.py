"""Validation of the label selectors in objects, with the messages of kube-apiserver. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.label_validation import label_value_errors, qualified_name_errors


def label_selector_errors(selector: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The errors of a metav1.LabelSelector whose operators the schema has checked."""
    for key, value in (selector.get("matchLabels") or {}).items():
        for why in qualified_name_errors(key):
            yield errors.invalid(f"{path}.matchLabels", key, why)
        for why in label_value_errors(value):
            yield errors.invalid(f"{path}.matchLabels", value, why)
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression_errors(each, f"{path}.matchExpressions[{index}]")


def _expression_errors(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    values: Sequence[str] = expression.get("values") or ()
    if expression["operator"] in ("In", "NotIn") and not values:
        yield errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if expression["operator"] in ("Exists", "DoesNotExist") and values:
        yield errors.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    for why in qualified_name_errors(expression["key"]):
        yield errors.invalid(f"{path}.key", expression["key"], why)
    for index, value in enumerate(values):
        for why in label_value_errors(value):
            yield errors.invalid(f"{path}.values[{index}]", value, why)
