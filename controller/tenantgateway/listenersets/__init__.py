"""ListenerSets: the listeners of a TenantGateway beyond those that fit on its Gateway."""
