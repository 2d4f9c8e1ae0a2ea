"""API errors, resources, ObjectMeta, labels and selectors (k8s.io/apimachinery)."""
