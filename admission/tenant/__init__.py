"""Admission plugins for Tenants: hosts, quotas, placement and deletion."""
