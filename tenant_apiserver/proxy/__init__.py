"""`tenant-apiserver proxy`: a reverse proxy before a kube-apiserver that forwards every request as its caller, and
answers lists of namespaces that RBAC refuses with those that the caller may see."""
