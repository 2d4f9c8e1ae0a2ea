"""The SecurityGroup kind: rules for the traffic of applications, each stored as a CiliumNetworkPolicy."""
