"""Platform settings for tests."""

from __future__ import annotations

from typing import Any

from controller.platform.settings import PlatformSettings

DEFAULTS = PlatformSettings()


def settings(**sections: Any) -> PlatformSettings:
    return PlatformSettings.model_validate(sections)


def certificates(**fields: Any) -> PlatformSettings:
    return settings(publishing={"certificates": fields})


def dns01(provider: str, **fields: Any) -> PlatformSettings:
    return certificates(solver="dns01", dns01={"provider": provider, provider: fields})
