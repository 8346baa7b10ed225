"""Refuses files of the user that Python would import instead of the packages beside this one.

Importing this module checks them; `pypto_cast` does so before it imports any of them.
"""

from __future__ import annotations

import importlib.util
import os.path
import sys
from typing import Final

_ROOMS: Final = ("tiling", "simulator", "ascend_kernels")
_HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def check_rooms() -> None:
    """Compare where Python finds the packages with where they are; none is imported.

    Raises:
        ImportError: another file or folder has the name of one; the text names it.
    """
    for name in _ROOMS:
        loaded = sys.modules.get(name)
        spec = importlib.util.find_spec(name) if loaded is None else loaded.__spec__
        if spec is None:
            continue
        own = os.path.join(_HOME, name)
        folders = list(spec.submodule_search_locations or ())
        if os.path.realpath(own) not in map(os.path.realpath, folders):
            found = spec.origin or folders[0]
            raise ImportError(
                f"{found} shadows the package {name!r} of pypto_cast, {own}: Python finds it "
                "first on sys.path; rename it, or start Python from another folder",
                name=name,
                path=found,
            )


check_rooms()
