"""What stays in memory as long as the process."""

import gc
from functools import cache


@cache
def freeze_loaded_objects(package: str) -> None:  # noqa: ARG001 - each package is kept once
    """Have the garbage collector pass over what is loaded by now, the large package of that name with it.

    Looking through a million objects that never go stops every thread for half a second, again and again.
    """
    gc.freeze()
