"""The Option kind: what the forms of a console offer for a field, computed from objects of the cluster."""
