"""How many examples a property test draws: all of them in `make test-long`, a third in `make test`."""

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_SHARE = 3
_FEWEST = 10


def examples(full: int) -> int:
    """Return the number of examples for a property that draws `full` of them in the long run."""
    return full if LONG else max(min(full, _FEWEST), full // _SHARE)
