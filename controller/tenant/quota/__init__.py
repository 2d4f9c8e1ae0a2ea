"""Writes the ResourceQuotas and the LimitRange of Tenants' Namespaces."""
