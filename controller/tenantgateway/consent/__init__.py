"""References to objects of other namespaces, and the ReferenceGrants by which those consent to them (GEP-709)."""
