"""Generates the definitions of other projects' kinds that the embedded cluster serves, from their CRD files.

Run `python -m tenant_apiserver.generate_crd_schemas DIRECTORY…`: every CRD that is served and lies in one of the
directories is written to registry/embedded/custom/shipped, without its descriptions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from apiserver.meta.resource import Object
from registry.embedded.custom import shipped
from registry.embedded.custom.compact import compact, without_descriptions

SHIPPED = Path(shipped.__file__).parent
# where projects write the version that a CRD is of
_VERSION_MARKS = (
    "gateway.networking.k8s.io/bundle-version",
    "gateway.networking.k8s.io/channel",
    "api-approved.kubernetes.io",
    "app.kubernetes.io/version",
    "controller-gen.kubebuilder.io/version",
)
# the releases of CRDs that do not name their own
_RELEASES = {"cert-manager.io": "v1.21.1", "cozystack.io": "v1.6"}
_RELEASE = "app.kubernetes.io/version"


def reduce(crd: Object) -> Object:
    """Returns a CRD with everything that decides how its objects are served, and the version that it is of."""
    spec = crd["spec"]
    metadata: Object = {"name": crd["metadata"]["name"]}
    for field in ("annotations", "labels"):
        marks = {name: value for name, value in (crd["metadata"].get(field) or {}).items() if name in _VERSION_MARKS}
        if marks:
            metadata[field] = marks
    if release := _RELEASES.get(spec["group"]):
        metadata["annotations"] = {**metadata.get("annotations", {}), _RELEASE: release}
    identity = {name: spec[name] for name in ("group", "names", "scope")}
    return {"metadata": metadata, "spec": {**identity, "versions": [_version(each) for each in spec["versions"]]}}


def _version(version: Mapping[str, object]) -> Object:
    reduced = dict(version)
    schema = version["schema"]
    assert isinstance(schema, dict)
    reduced["schema"] = {"openAPIV3Schema": without_descriptions(schema["openAPIV3Schema"])}
    columns = version.get("additionalPrinterColumns")
    if isinstance(columns, list):
        reduced["additionalPrinterColumns"] = [
            {name: value for name, value in column.items() if name != "description"} for column in columns
        ]
    return reduced


def render(crds: Iterable[Object]) -> dict[str, str]:
    """Returns the files by name, one for each group, with one shared part or definition in a line."""
    groups: dict[str, list[Object]] = {}
    for crd in sorted(crds, key=lambda each: str(each["metadata"]["name"])):
        if crd["metadata"]["name"] in shipped.NAMES:
            groups.setdefault(crd["spec"]["group"], []).append(reduce(crd))
    return {f"{group}.json": _lines(compact(found)) for group, found in groups.items()}


def _lines(document: Object) -> str:
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(each, separators=(",", ":")) for each in document[name]) + "\n]"
        for name in ("shared", "definitions")
    )
    return "{" + ",\n".join(parts) + "}\n"


def read_crds(directories: Sequence[Path]) -> list[Object]:
    """Reads every CRD in the YAML files below the directories."""
    files = sorted(path for directory in directories for path in directory.rglob("*.yaml"))
    documents = [each for path in files for each in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)]
    return [each for each in documents if each and each.get("kind") == "CustomResourceDefinition"]


def main(arguments: list[str]) -> int:
    directories = [Path(each) for each in arguments]
    if not directories or not all(each.is_dir() for each in directories):
        print("usage: python -m tenant_apiserver.generate_crd_schemas DIRECTORY…", file=sys.stderr)
        return 2
    texts = render(read_crds(directories))
    for name, text in texts.items():
        (SHIPPED / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
