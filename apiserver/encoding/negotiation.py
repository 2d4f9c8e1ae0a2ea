"""Negotiates the media type of a response and the transformation of its object (WIRE-E1 to WIRE-E9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.encoding.accept_header import accept_clauses
from apiserver.meta.errors import NotAcceptable

JSON = "application/json"
YAML = "application/yaml"

_META_GROUP = "meta.k8s.io"
_META_VERSIONS = ("v1", "v1beta1")
_STREAM = ";stream=watch"


@dataclass(frozen=True, slots=True)
class MediaType:
    """`transform` is "", Table, PartialObjectMetadata or PartialObjectMetadataList, in `version` of meta.k8s.io."""

    type: str = JSON
    transform: str = ""
    version: str = ""
    pretty: bool = False
    stream: bool = False

    @property
    def content_type(self) -> str:
        """The Content-Type header. Its only parameter is `stream=watch`, if the client sent it (WIRE-E7, WIRE-F1)."""
        return self.type + _STREAM if self.stream else self.type


def negotiate(accept: str, *, watch: bool = False, tables: bool = True) -> MediaType:
    """The media type that fits `accept` best. Watches are JSON only (WIRE-E17). Raises NotAcceptable (WIRE-E3)."""
    offered = (JSON,) if watch else (JSON, YAML)
    for clause in accept_clauses(accept):
        for media_type in offered:
            if clause.matches(media_type):
                found = _with_parameters(media_type, clause.parameters, watch=watch, tables=tables)
                if found is not None:
                    return found
    accepted = (JSON, JSON + _STREAM) if watch else offered
    raise NotAcceptable(f"only the following media types are accepted: {', '.join(accepted)}")


def _with_parameters(media_type: str, parameters: Mapping[str, str], *, watch: bool, tables: bool) -> MediaType | None:
    """None if the clause's transformation is not supported: the clause is skipped, which is no error (WIRE-E4)."""
    transform = parameters.get("as", "")
    group, version = parameters.get("g", ""), parameters.get("v", "")
    stream = parameters.get("stream", "")
    if stream not in ("", "watch"):
        return None
    if transform or group or version:
        supported = group == _META_GROUP and version in _META_VERSIONS
        kinds = ("PartialObjectMetadata", "PartialObjectMetadataList", *(("Table",) if tables else ()))
        if not supported or transform not in kinds:
            return None
    return MediaType(
        type=media_type,
        transform=transform,
        version=version,
        pretty=parameters.get("pretty") == "1",
        stream=watch and stream == "watch",
    )
