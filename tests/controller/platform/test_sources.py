"""The settings in force as the file, the Package and the ConfigMap change; wrong ones are refused as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Object
from controller.platform.package import PACKAGE
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.platform.sources import PlatformSources


def package(**values: Any) -> Object:
    return {"metadata": {"name": PACKAGE}, "spec": {"components": {"platform": {"values": values}}}}


class Sources:
    """PlatformSources over a file, with the hosts that were in force and what was told about problems."""

    def __init__(self, **file: Any) -> None:
        self.file = ReloadableSettings(PlatformSettings.model_validate(file))
        self.sources = PlatformSources(self.file)
        self.hosts: list[str | None] = []
        self.told: list[tuple[str, ...]] = []
        self.tenants = {"tenant-root"}
        self.deletions: list[Sequence[str]] = []
        self.sources.judge_publisher(lambda namespace: namespace in self.tenants)
        self.sources.subscribe_to_deletion(lambda _, changes: self.deletions.append(changes))
        self.sources.subscribe(lambda: self.hosts.append(self.host))
        self.sources.subscribe_to_problems(lambda: self.told.append(tuple(self.sources.problems)))

    @property
    def host(self) -> str | None:
        return self.sources.current.publishing.host

    @property
    def publisher(self) -> str:
        return self.sources.current.publishing.ingress_name

    def add_tenant(self, namespace: str) -> None:
        self.tenants.add(namespace)
        self.sources.tenant_changed(namespace)

    def write_file(self, **file: Any) -> None:
        self.file.replace(PlatformSettings.model_validate(file))


GOOD = package(publishing={"host": "a.example"})
WRONG = package(publishing={"host": "b.example", "certificates": {"solver": 7}})
FIELD = "publishing.certificates.solver: must be 'http01' or 'dns01'"


def test_the_package_goes_before_the_file() -> None:
    world = Sources(publishing={"host": "file.example"})
    assert not world.sources.known.is_set()
    world.sources.show_package(GOOD)
    assert (world.hosts, world.sources.known.is_set()) == (["a.example"], True)
    assert world.sources.describe() == f"the settings are those of Package {PACKAGE}"


def test_without_a_package_the_file_holds() -> None:
    world = Sources(publishing={"host": "file.example"})
    assert world.sources.describe() == f"Package {PACKAGE} has not been read yet"
    world.sources.show_package(None)
    assert (world.host, world.sources.known.is_set()) == ("file.example", True)
    assert world.sources.describe() == f"there is no Package {PACKAGE}, the settings are those of the file"


def test_a_wrong_package_changes_nothing_and_names_the_field() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(WRONG)
    assert world.host == "a.example"
    assert world.sources.package_problem == FIELD
    assert world.sources.describe().endswith(f"the previous settings stay in force: {FIELD}")
    world.sources.show_package(WRONG)
    world.sources.show_package(package(publishing={"host": "c.example"}))
    assert world.host == "c.example"
    assert world.told == [(f"Package {PACKAGE} is invalid: {FIELD}",), ()]


def test_a_changed_file_takes_effect_beside_a_wrong_package() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(WRONG)
    world.write_file(tenants={"chart": "flux"})
    assert (world.host, world.sources.current.tenants.chart) == ("a.example", "flux")


def test_a_file_that_adds_the_issuer_of_the_package_makes_it_valid() -> None:
    world = Sources()
    world.sources.show_package(package(publishing={"certificates": {"issuerName": "own"}}))
    assert "issuerName" in world.sources.package_problem
    world.write_file(publishing={"certificates": {"acmeServers": {"own": {"server": "https://ca.example/d"}}}})
    assert world.sources.package_problem == ""
    assert world.sources.current.publishing.certificates.issuer_name == "own"


def test_after_the_package_is_deleted_the_file_holds_and_what_changes_is_told() -> None:
    world = Sources(publishing={"host": "file.example"})
    world.sources.show_package(package(publishing={"host": "a.example"}, gateway={"enabled": True}))
    world.sources.show_package(None)
    assert world.host == "file.example"
    assert world.sources.describe() == f"there is no Package {PACKAGE}, the settings are those of the file"
    assert world.deletions == [
        [
            'publishing.host: "file.example" instead of "a.example"',
            'publishing.exposedServices: [] instead of ["api", "dashboard", "vm-exportproxy", "cdi-uploadproxy"]',
            "gateway.enabled: false instead of true",
        ]
    ]


def test_a_wrong_package_that_is_deleted_is_no_problem_any_more() -> None:
    world = Sources(publishing={"host": "file.example"})
    world.sources.show_package(GOOD)
    world.sources.show_package(WRONG)
    world.sources.show_package(None)
    assert (world.host, world.sources.problems) == ("file.example", [])
    assert world.told[-1] == ()


def test_a_package_that_was_never_there_is_no_deletion() -> None:
    world = Sources()
    world.sources.show_package(None)
    world.sources.show_package(None)
    assert world.deletions == []


def test_where_only_the_package_counts_its_settings_outlive_it() -> None:
    world = Sources(platform={"source": "package"}, publishing={"host": "file.example"})
    world.sources.show_package(GOOD)
    world.sources.show_package(WRONG)
    world.sources.show_package(None)
    assert (world.host, world.sources.problems, world.deletions) == ("a.example", [], [])
    assert "its last settings stay in force" in world.sources.describe()


def test_a_package_that_is_deleted_before_it_was_valid_lets_the_controllers_begin() -> None:
    world = Sources()
    world.sources.show_package(WRONG)
    world.sources.show_package(None)
    assert world.sources.known.is_set()


NOWHERE = package(publishing={"host": "b.example", "ingressName": "tenant-later"})
NO_TENANT = "publishing.ingressName: tenant-later is the namespace of no tenant"


def test_a_package_whose_publisher_is_no_tenant_is_refused_as_a_whole() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(NOWHERE)
    assert (world.publisher, world.host) == ("tenant-root", "a.example")
    assert world.sources.package_problem == NO_TENANT
    assert world.sources.describe().endswith(f"the previous settings stay in force: {NO_TENANT}")


def test_a_tenant_that_is_created_later_makes_the_publisher_valid() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(NOWHERE)
    world.add_tenant("tenant-other")
    assert world.publisher == "tenant-root"
    world.add_tenant("tenant-later")
    assert (world.publisher, world.host, world.sources.problems) == ("tenant-later", "b.example", [])


def test_a_publisher_whose_tenant_is_deleted_stays_and_other_settings_can_be_changed() -> None:
    """NoPublishingTenant tells about it: a refusal would keep every other change back."""
    world = Sources()
    world.add_tenant("tenant-later")
    world.sources.show_package(NOWHERE)
    world.tenants.discard("tenant-later")
    world.sources.tenant_changed("tenant-later")
    world.sources.show_package(package(publishing={"host": "c.example", "ingressName": "tenant-later"}))
    assert (world.publisher, world.host, world.sources.problems) == ("tenant-later", "c.example", [])


def test_a_publisher_that_is_no_tenant_when_the_server_starts_is_taken_as_it_is() -> None:
    """The settings of before are not known then, and a tenant of the first installation does not exist yet."""
    world = Sources()
    world.sources.show_package(NOWHERE)
    assert (world.publisher, world.host, world.sources.known.is_set()) == ("tenant-later", "b.example", True)


def test_the_publisher_of_admin_pages_is_judged_as_well() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(package(publishing={"host": "b.example", "ingressNameAdmin": "tenant-later"}))
    problem = "publishing.ingressNameAdmin: tenant-later is the namespace of no tenant"
    assert (world.host, world.sources.package_problem) == ("a.example", problem)
    world.add_tenant("tenant-later")
    assert (world.host, world.sources.problems) == ("b.example", [])
    assert world.sources.current.publishing.ingress_name_admin == "tenant-later"


def test_the_root_is_a_publisher_before_it_exists() -> None:
    world = Sources(publishing={"ingressName": "tenant-other"})
    world.tenants.clear()
    world.sources.show_package(None)
    world.write_file()
    assert (world.publisher, world.sources.problems) == ("tenant-root", [])


@pytest.mark.parametrize("source", ["auto", "file"])
def test_a_file_whose_publisher_is_no_tenant_is_refused_as_a_whole(source: str) -> None:
    world = Sources(platform={"source": source})
    world.sources.show_package(GOOD)
    before = world.sources.current
    world.write_file(platform={"source": source}, publishing={"ingressName": "tenant-later"}, tenants={"chart": "flux"})
    assert world.sources.current == before
    [problem] = world.sources.problems
    assert problem == f"the settings file is invalid: {NO_TENANT}"
    assert problem in world.sources.describe()
    assert world.sources.package_problem == ""
    world.add_tenant("tenant-later")
    assert (world.publisher, world.sources.problems) == ("tenant-later", [])


def test_a_wrong_package_does_not_hide_a_wrong_publisher_of_the_file() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_package(WRONG)
    world.write_file(publishing={"ingressName": "tenant-later"})
    assert (world.publisher, world.host) == ("tenant-root", "a.example")
    assert [FIELD in each or NO_TENANT in each for each in world.sources.problems] == [True, True]


def test_a_package_that_is_wrong_from_the_start_keeps_everything_from_being_written() -> None:
    """Settings of the file would move every tenant, and move it back when the Package is corrected."""
    world = Sources()
    world.sources.show_package(WRONG)
    assert not world.sources.known.is_set()
    assert "nothing is written until it is valid" in world.sources.describe()
    world.sources.show_package(GOOD)
    assert world.sources.known.is_set()


@pytest.mark.parametrize(
    ("source", "known"), [pytest.param("auto", True, id="auto"), pytest.param("package", False, id="package")]
)
def test_only_auto_does_without_a_package(source: str, known: bool) -> None:
    world = Sources(platform={"source": source})
    world.sources.show_package(None)
    assert world.sources.known.is_set() == known


def test_with_source_file_nothing_else_is_read() -> None:
    world = Sources(platform={"source": "file"}, publishing={"host": "file.example"})
    assert world.sources.known.is_set()
    assert not world.sources.follows_package.is_set()
    world.sources.show_root_host("map.example")
    world.sources.show_package(WRONG)
    assert (world.host, world.sources.problems, world.sources.package_problem) == ("file.example", [], "")
    world.write_file(publishing={"host": "file.example"})
    assert world.sources.follows_package.is_set()
    assert world.host == "map.example"


def test_the_configmap_goes_before_both_and_a_wrong_one_is_refused() -> None:
    world = Sources()
    world.sources.show_package(GOOD)
    world.sources.show_root_host("map.example")
    world.sources.show_root_host("*")
    assert world.host == "map.example"
    [problem] = world.sources.problems
    assert problem.startswith("ConfigMap cozy-system/cozystack is invalid: root-host: ")
    assert problem in world.sources.describe()
    world.sources.show_root_host(None)
    assert (world.host, world.sources.problems) == ("a.example", [])


@pytest.mark.parametrize(
    ("error", "known"),
    [
        pytest.param(
            errors.StatusError(403, "Forbidden", "packages is forbidden"), True, id="the role of before an upgrade"
        ),
        pytest.param(errors.ServiceUnavailable("starting"), False, id="an outage says nothing"),
    ],
)
def test_a_package_that_may_not_be_read_leaves_the_file_in_force(error: errors.StatusError, known: bool) -> None:
    world = Sources()
    world.sources.show_error(error)
    assert world.sources.known.is_set() == known
    assert ("cannot be read" in world.sources.describe()) == known
