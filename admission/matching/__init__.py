"""Decides which requests a policy or a webhook applies to (pkg/admission/plugin/policy/matching)."""
