"""Exclude long-lived objects from garbage collection."""

import gc
from functools import cache


@cache
def freeze_loaded_objects(package: str) -> None:  # noqa: ARG001 - the cache runs this once a package
    """Exclude all objects loaded so far, such as those of the large package of that name, from garbage collection.

    Otherwise each full collection scans a million permanent objects and stops every thread for half a second.
    """
    gc.freeze()
