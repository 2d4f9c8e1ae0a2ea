"""Puts the settings together from their file, the platform's Package and Cozystack's ConfigMap, as these change.

Settings with an error are refused as a whole: the former ones stay in force, and `problems` names the fields.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.platform.changes import changes
from controller.platform.package import PACKAGE, combine, known_values
from controller.platform.settings import PlatformSettings, ReloadableSettings, SettingsSource
from registry.names import ROOT_NAMESPACE, host_errors

_logger = logging.getLogger(__name__)
CONFIGMAP_WORDS = "ConfigMap cozy-system/cozystack"
FILE_WORDS = "the settings file"
DeletionListener = Callable[[Object, Sequence[str]], None]
"""Called with the Package that was deleted, and a phrase for each setting that has changed with it."""


class _FileRefused(ValueError):
    """A value of the file cannot be in force."""


class PlatformSources:
    """A SettingsSource over the settings of the file.

    `known` is set once it has been found out whether there is a Package, and its values are in force: until then,
    the settings are those of the file, and nothing should be written that depends on them. A Package that is wrong
    from the start leaves it unset, because the settings before it are not known; so does, with `platform.source:
    package`, one that does not exist.

    A change of `publishing.ingressName` or `ingressNameAdmin` to the namespace of no tenant is refused like any other
    wrong value, until the tenant is created. The first settings are taken as they are: those before them are not known.
    """

    def __init__(self, file: SettingsSource) -> None:
        self._file = file
        self._effective = ReloadableSettings(file.current)
        self._problem_callbacks: list[Callable[[], None]] = []
        self._deletion_listeners: list[DeletionListener] = []
        self._is_tenant: Callable[[str], bool] = lambda _: True
        self._refused_publishers: set[str] = set()
        self._package: Object | None = None
        self._looked = False
        self._denied = ""
        self._accepted: Mapping[str, Any] | None = None
        self._root_host = ""
        self._configmap: Object | None = None
        self._package_problem = self._file_problem = self._root_host_problem = self._ratio_problem = ""
        self._waits_for_ratios = False
        self.follows_package = asyncio.Event()
        """Set once the file does not say `platform.source: file`; then the caller shows the Package."""
        self.known = asyncio.Event()
        file.subscribe(self._update)
        self._update()

    @property
    def current(self) -> PlatformSettings:
        return self._effective.current

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._effective.subscribe(callback)

    def subscribe_to_problems(self, callback: Callable[[], None]) -> None:
        """Call `callback` when `problems` has changed."""
        self._problem_callbacks.append(callback)

    def subscribe_to_deletion(self, listener: DeletionListener) -> None:
        """Call `listener` when the Package was deleted, and the settings of the file are in force instead."""
        self._deletion_listeners.append(listener)

    def judge_publisher(self, is_tenant: Callable[[str], bool]) -> None:
        """From now on, ask `is_tenant` whether a namespace is that of a tenant. The caller also calls
        `tenant_changed`."""
        self._is_tenant = is_tenant

    def tenant_changed(self, namespace: str) -> None:
        """The tenant with this namespace was created or deleted."""
        if namespace in self._refused_publishers:
            self._update()

    @property
    def package(self) -> Object | None:
        """The Package, None if there is none."""
        return self._package

    @property
    def package_problem(self) -> str:
        """The wrong fields of the Package; empty if it is in force or there is none."""
        return self._package_problem

    @property
    def configmap(self) -> Object | None:
        """Cozystack's ConfigMap, None if there is none."""
        return self._configmap

    @property
    def configmap_problem(self) -> str:
        """The wrong keys of the ConfigMap; empty if it is in force or there is none."""
        root_host = "" if self._reads_file_only else self._root_host_problem
        return "; ".join(each for each in (root_host, self._ratio_problem) if each)

    @property
    def problems(self) -> Sequence[str]:
        """The wrong fields of the Package, of the ConfigMap and of the file, each with the object that has it."""
        package = "" if self._reads_file_only else self._package_problem
        found = (
            (f"Package {PACKAGE}", package),
            (CONFIGMAP_WORDS, self.configmap_problem),
            (FILE_WORDS, self._file_problem),
        )
        return [f"{subject} is invalid: {problem}" for subject, problem in found if problem]

    def describe(self) -> str:
        """The source of the settings and what is wrong with it, as readyz shows it."""
        source = "the settings are those of the file, as platform.source says"
        own = source if self._reads_file_only else self._source()
        return "; ".join((own, *self._configmap_words(), *self._file_words()))

    def show_package(self, package: Object | None) -> None:
        """Takes over the Package as it is now; None if there is none."""
        deleted, before = self._package if package is None else None, self.current
        self._package, self._looked, self._denied = package, True, ""
        if deleted is not None and not self._needs_package:
            self._accepted = None
        self._update()
        if deleted is not None and self._follows_file:
            self._report_deletion(deleted, changes(before, self.current))

    def show_error(self, error: StatusError) -> None:
        """Takes note that the cluster does not let us see whether there is a Package: until it does, the settings stay
        as they are. Errors that say nothing about our rights are ignored."""
        if error.code in (401, 403):
            self._denied, self._looked = str(error), True
            self._update()

    def show_configmap(self, configmap: Object | None) -> None:
        """Takes over the ConfigMap as it is now; None if there is none."""
        self._configmap = configmap
        self.show_root_host(((configmap or {}).get("data") or {}).get("root-host"))

    def show_ratio_problem(self, problem: str, waits: bool) -> None:
        """Takes note of the wrong ratios of the ConfigMap, empty if there are none. With `waits`, none of before are
        known."""
        self._waits_for_ratios = waits
        if problem != self._ratio_problem:
            self._ratio_problem = problem
            self._report(CONFIGMAP_WORDS, problem)

    def show_root_host(self, host: object) -> None:
        """Takes over `root-host` of the ConfigMap; None if it has none."""
        problems = host_errors(host) if isinstance(host, str) and host else []
        self._set_root_host_problem(f"root-host: {problems[0]}" if problems else "")
        if not problems:
            self._root_host = host if isinstance(host, str) else ""
            self._update()

    @property
    def _reads_file_only(self) -> bool:
        return self._file.current.platform.source == "file"

    @property
    def _needs_package(self) -> bool:
        return self._file.current.platform.source == "package"

    @property
    def _follows_file(self) -> bool:
        """True if there is no Package, and the settings of the file are in force in its place."""
        return self._package is None and not self._needs_package and not self._reads_file_only

    def _update(self) -> None:
        if not self._reads_file_only:
            self.follows_package.set()
        package_problem = file_problem = ""
        self._refused_publishers.clear()
        try:
            self._put_in_force(self._candidate())
        except _FileRefused as error:
            file_problem = str(error)
        except ValueError as error:
            package_problem, file_problem = str(error), self._keep_package()
        self._set_package_problem(package_problem)
        self._set_file_problem(file_problem)
        if self._reads_file_only or (self._looked and not self._waits):
            self.known.set()

    def _candidate(self) -> Mapping[str, Any] | None:
        """The values of the Package that should be in force, None if those of the file should. Raises ValueError if
        they are no mapping."""
        return self._accepted if self._package is None or self._reads_file_only else known_values(self._package)

    def _put_in_force(self, package: Mapping[str, Any] | None) -> None:
        """Raises ValueError if the values of the Package cannot be in force, and _FileRefused if those of the file
        cannot."""
        if self._reads_file_only:
            settings = self._file.current
        else:
            settings = combine(self._file.current, package, self._root_host)
        for field, name in self._wrong_publishers(settings):
            self._refused_publishers.add(name)
            problem = f"publishing.{field}: {name} is the namespace of no tenant"
            named = not self._reads_file_only and (package or {}).get("publishing", {}).get(field)
            raise ValueError(problem) if named else _FileRefused(problem)
        self._accepted = package
        self._effective.replace(settings)

    def _wrong_publishers(self, settings: PlatformSettings) -> Iterator[tuple[str, str]]:
        """The settings that name the namespace of no tenant, with this name. A publisher that has been in force stays
        so, and does not keep other changes back."""
        if not self.known.is_set():
            return
        new, current = settings.publishing, self.current.publishing
        for field, name, before in (
            ("ingressName", new.ingress_name, current.ingress_name),
            ("ingressNameAdmin", new.ingress_name_admin, current.ingress_name_admin),
        ):
            if name not in ("", before, ROOT_NAMESPACE) and not self._is_tenant(name):
                yield field, name

    def _keep_package(self) -> str:
        """The values of before stay in force, beside a file or a ConfigMap that may have changed. Returns what is wrong
        with the file."""
        try:
            self._put_in_force(self._accepted)
        except _FileRefused as error:
            return str(error)
        except ValueError as error:
            _logger.error("the settings of before stay in force: %s", error)
        return ""

    @property
    def _waits(self) -> bool:
        """True while no values of a Package are in force that should be."""
        return (self._package is not None or self._needs_package) and self._accepted is None

    def _source(self) -> str:
        if self._package_problem:
            kept = "nothing is written until it is valid" if self._waits else "the previous settings stay in force"
            return f"Package {PACKAGE} is invalid, {kept}: {self._package_problem}"
        if self._denied:
            return f"Package {PACKAGE} cannot be read, the settings stay as they are: {self._denied}"
        if not self._looked:
            return f"Package {PACKAGE} has not been read yet"
        if self._package is not None:
            return f"the settings are those of Package {PACKAGE}"
        if self._accepted is not None:
            return f"there is no Package {PACKAGE} any more, its last settings stay in force until a restart"
        if self._waits:
            return f"there is no Package {PACKAGE}: nothing is written until it exists, as platform.source says"
        return f"there is no Package {PACKAGE}, the settings are those of the file"

    def _configmap_words(self) -> Sequence[str]:
        if not self.configmap_problem:
            return []
        kept = "; nothing is written until it is valid" if self._waits_for_ratios else ""
        return [f"{CONFIGMAP_WORDS} is invalid: {self.configmap_problem}{kept}"]

    def _file_words(self) -> Sequence[str]:
        if not self._file_problem:
            return []
        return [f"{FILE_WORDS} is invalid: {self._file_problem}; the previous settings stay in force"]

    def _report_deletion(self, package: Object, changed: Sequence[str]) -> None:
        _logger.warning("Package %s was deleted: %s", PACKAGE, "; ".join(changed) or "no setting has changed")
        for listener in self._deletion_listeners:
            listener(package, changed)

    def _set_file_problem(self, problem: str) -> None:
        if problem != self._file_problem:
            self._file_problem = problem
            self._report(FILE_WORDS, problem)

    def _set_package_problem(self, problem: str) -> None:
        if problem != self._package_problem:
            self._package_problem = problem
            self._report(f"Package {PACKAGE}", problem)

    def _set_root_host_problem(self, problem: str) -> None:
        if problem != self._root_host_problem:
            self._root_host_problem = problem
            self._report(CONFIGMAP_WORDS, problem)

    def _report(self, subject: str, problem: str) -> None:
        if problem:
            _logger.error("%s is invalid, keeping the previous settings: %s", subject, problem)
        else:
            _logger.info("%s is valid again", subject)
        for callback in self._problem_callbacks:
            callback()
