"""Kinds that CustomResourceDefinitions declare, and the definitions themselves."""
