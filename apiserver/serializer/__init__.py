"""Decoding of request bodies: JSON, YAML and protobuf (apimachinery/pkg/runtime/serializer)."""
