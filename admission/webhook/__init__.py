"""Mutating and validating admission webhooks (pkg/admission/plugin/webhook)."""
