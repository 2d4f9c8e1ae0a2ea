"""Applications: the kinds of apps.cozystack.io, each made from an ApplicationDefinition and stored as HelmReleases."""
