"""Desired objects of a TenantGateway, one module for each kind."""
