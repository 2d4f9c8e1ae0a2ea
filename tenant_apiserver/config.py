"""Platform settings: one YAML file, checked before anything starts, with errors that name the key."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from registry.names import host_errors
from registry.tenant.settings import ReleaseSettings

_DEFAULTS = ReleaseSettings()


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)


class Publishing(_Section):
    host: str | None = Field(None, description="Domain of the root tenant; --root-host where it is absent.")

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, value: str | None) -> str | None:
        if value is not None and (problems := host_errors(value)):
            raise ValueError(problems[0])
        return value


class ChartRef(_Section):
    kind: str = _DEFAULTS.chart_kind
    name: str = _DEFAULTS.chart_name
    namespace: str = _DEFAULTS.chart_namespace


class Release(_Section):
    """What a new Tenant's HelmRelease is made of."""

    chart_ref: ChartRef = Field(ChartRef(), alias="chartRef")
    interval: str = _DEFAULTS.interval
    install_timeout: str = Field(_DEFAULTS.install_timeout, alias="installTimeout")
    upgrade_timeout: str = Field(_DEFAULTS.upgrade_timeout, alias="upgradeTimeout")
    strategy: str = _DEFAULTS.strategy
    retry_interval: str = Field(_DEFAULTS.retry_interval, alias="retryInterval")
    max_history: int = Field(_DEFAULTS.max_history, alias="maxHistory", ge=0)
    values_secret: str = Field(_DEFAULTS.values_secret, alias="valuesSecret")
    shard: str = _DEFAULTS.shard

    def settings(self) -> ReleaseSettings:
        return ReleaseSettings(
            chart_kind=self.chart_ref.kind,
            chart_name=self.chart_ref.name,
            chart_namespace=self.chart_ref.namespace,
            interval=self.interval,
            install_timeout=self.install_timeout,
            upgrade_timeout=self.upgrade_timeout,
            strategy=self.strategy,
            retry_interval=self.retry_interval,
            max_history=self.max_history,
            values_secret=self.values_secret,
            shard=self.shard,
        )


class PlatformConfig(_Section):
    publishing: Publishing = Publishing()
    release: Release = Release()


def load(path: Path | None) -> PlatformConfig:
    """The settings in a file; the defaults without one. Raises ValueError with a line that names the key."""
    if path is None:
        return PlatformConfig()
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from error
    try:
        return PlatformConfig.model_validate(document or {})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ValueError(f"{path}: {key}: {first['msg']}") from error
