"""The command `tenant-apiserver`: parse options, build the server and its controllers, run them."""

import sys
from pathlib import Path

__version__ = "0.1.0"


def _find_packages() -> None:
    """Lets `apiserver`, `registry`, `admission` and `controller` be imported: a wheel has them in the folder
    `_packages` (setup.py), and a checkout beside this package. They come first, so that no other package of these names
    does."""
    here = Path(__file__).parent
    bundled = here / "_packages"
    folder = str(bundled if bundled.is_dir() else here.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)


_find_packages()
