"""Reports policy denials to the caller and the audit log, byte for byte as Kubernetes does (WIRE-H21, WIRE-H23)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from admission.matching.go_json import go_json
from admission.plugin_rule import name_for_errors
from admission.policy.compiled_policy import CompiledPolicy, PolicyBinding
from admission.policy.validator import Denial, PolicyResult
from apiserver.admission import Attributes
from apiserver.meta.errors import Forbidden, InternalError, StatusError

FAILURES_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure"
_MOST_FAILURES = 50
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass
class DenialReport:
    """Collects the decisions of all policies on one request."""

    attributes: Attributes
    denied: StatusError | None = None
    _failures: list[dict[str, Any]] = field(default_factory=list)
    _annotations: dict[str, list[str]] = field(default_factory=dict)

    def add_configuration_error(self, policy: CompiledPolicy, binding: PolicyBinding | None, why: str) -> None:
        if policy.ignores_errors:
            return
        subject = "policy" if binding is None else "binding"
        self._deny(policy, binding, Denial(f"failed to configure {subject}: {why}"))

    def add(self, policy: CompiledPolicy, binding: PolicyBinding, results: Iterable[PolicyResult]) -> None:
        for result in results:
            for denial in result.denials:
                self._enforce(policy, binding, denial)
            for key, value in result.annotations:
                values = self._annotations.setdefault(f"{policy.name}/{key}", [])
                if value not in values:
                    values.append(value)

    def add_cut_off(self, policy: CompiledPolicy, binding: PolicyBinding, why: str) -> None:
        """Records that a limit of this server ended the evaluation. With any failurePolicy, the request is rejected if
        the policy might have denied it."""
        if "Deny" not in binding.actions and not policy.may_deny_without_action:
            self._enforce(policy, binding, Denial(f"the policy could not be evaluated: {why}"))
        elif self.denied is None:
            named = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            self.denied = InternalError(f"{named} could not be evaluated: {why}")

    def publish(self) -> None:
        """Writes the audit annotations, then raises the first denial, if there is one."""
        annotations = self.attributes.context.annotations
        for key, values in self._annotations.items():
            annotations[key] = ", ".join(values)
        if self._failures:
            annotations[FAILURES_ANNOTATION] = go_json(self._failures[:_MOST_FAILURES])
        if self.denied is not None:
            raise self.denied

    def _enforce(self, policy: CompiledPolicy, binding: PolicyBinding, denial: Denial) -> None:
        if not denial.follows_actions:
            self._deny(policy, binding, denial)
            return
        for action in binding.actions:
            match action:
                case "Deny":
                    self._deny(policy, binding, denial)
                case "Warn":
                    named = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                    self.attributes.context.warn(f"Validation failed for {named}: {denial.message}")
                case "Audit":
                    self._failures.append(_failure(policy, binding, denial))

    def _deny(self, policy: CompiledPolicy, binding: PolicyBinding | None, denial: Denial) -> None:
        if self.denied is None:
            self.denied = _denial_error(self.attributes, policy, binding, denial)


def _denial_error(
    attributes: Attributes, policy: CompiledPolicy, binding: PolicyBinding | None, denial: Denial
) -> StatusError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {denial.message}"
    resource = attributes.resource.group_resource
    error = Forbidden(resource, name_for_errors(attributes), message, causes=[{"message": message}])
    error.reason = denial.reason
    error.code = _CODES.get(denial.reason, 422)
    return error


def _failure(policy: CompiledPolicy, binding: PolicyBinding, denial: Denial) -> dict[str, Any]:
    return {
        "message": denial.message,
        "policy": policy.name,
        "binding": binding.name,
        "expressionIndex": denial.index,
        "validationActions": list(binding.actions),
    }
