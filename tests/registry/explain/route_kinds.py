"""The kinds of routes as the cluster serves them."""

from __future__ import annotations

from registry.cluster.interface import ClusterResource

HTTPROUTES = ClusterResource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
GRPCROUTES = ClusterResource("gateway.networking.k8s.io", "v1", "grpcroutes", "GRPCRoute")
TLSROUTES = ClusterResource("gateway.networking.k8s.io", "v1", "tlsroutes", "TLSRoute")
