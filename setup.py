"""Puts the packages with generic names below `tenant_apiserver` in a wheel: as top levels in site-packages, `registry`
or `controller` would clash with those of other projects. All else is in pyproject.toml.

The folders stay where they are, and so do the names of imports: `tenant_apiserver/__init__.py` finds them.
"""

from setuptools import find_namespace_packages, setup

GENERIC = ("apiserver", "registry", "admission", "controller")
BUNDLE = "tenant_apiserver._packages"

setup(
    packages=[
        *find_namespace_packages(include=["tenant_apiserver", "tenant_apiserver.*"]),
        *(
            f"{BUNDLE}.{package}"
            for name in GENERIC
            for package in find_namespace_packages(include=[name, f"{name}.*"])
        ),
    ],
    package_dir={f"{BUNDLE}.{name}": name for name in GENERIC},
)
