"""The plugin `kubectl tenant`: the tree of tenants, why things are as they are, quota and hostnames.

It asks by `kubectl get --raw`, so that kubeconfigs, contexts and credentials are kubectl's own matter.
"""
