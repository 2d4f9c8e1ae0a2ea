"""The controllers of the embedded cluster, which do what kube-controller-manager does."""
