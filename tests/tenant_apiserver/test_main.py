"""The command starts in any environment."""

from __future__ import annotations

import subprocess
import sys

_ACCOUNT_WITHOUT_HOME = """
import pwd, sys

def getpwuid(uid):
    raise KeyError(uid)

pwd.getpwuid = getpwuid
from tenant_apiserver.__main__ import main
sys.argv = ["tenant-apiserver", "serve"]
main()
"""


def test_an_account_without_a_home_directory_is_told_where_its_kubeconfig_is_looked_for() -> None:
    """Such an account is in no passwd file, as of a container, and its environment has no HOME."""
    ended = subprocess.run(
        [sys.executable, "-c", _ACCOUNT_WITHOUT_HOME], env={}, capture_output=True, text=True, timeout=60
    )
    assert "there is no kubeconfig in /.kube/config" in ended.stderr
    assert (len(ended.stderr.splitlines()), ended.returncode) == (1, 1)


_LIBRARIES_OF_THE_VERSION = """
import sys
from tenant_apiserver.__main__ import main
sys.argv = ["tenant-apiserver", "--version"]
try:
    main()
finally:
    print(sorted({"aiohttp", "pydantic", "cryptography"} & set(sys.modules)))
"""


def test_the_version_is_told_without_loading_the_libraries_of_a_server() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LIBRARIES_OF_THE_VERSION], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.splitlines()[1:] == ["[]"]
    assert ended.returncode == 0
