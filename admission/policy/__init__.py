"""ValidatingAdmissionPolicy (pkg/admission/plugin/policy/validating)."""
