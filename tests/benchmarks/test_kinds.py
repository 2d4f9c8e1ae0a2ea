"""The kind that a comparison is made with: Tenants, or the applications of an ApplicationDefinition."""

from __future__ import annotations

from benchmarks.features.applications import definition
from benchmarks.kinds import TENANT, application_kind


def test_applications_have_the_names_and_labels_of_their_definition() -> None:
    kind = application_kind(definition(3))
    assert kind.collection == "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/database3s"
    made, release = kind.make("b00042"), kind.release("b00042")
    assert (made["kind"], made["metadata"]["labels"]["slot"]) == ("Database3", "42")
    assert release["metadata"]["name"] == "database3-b00042"
    assert release["metadata"]["labels"]["apps.cozystack.io/application.kind"] == "Database3"


def test_tenants_are_compared_without_a_definition() -> None:
    assert TENANT.collection.endswith("/namespaces/tenant-root/tenants")
    assert TENANT.release("b00042")["metadata"]["name"] == "tenant-b00042"
