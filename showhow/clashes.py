"""Files that hide parts of Showhow: its rooms are imported by short names, such as `db`, which others use too."""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    *("db", "evaluation", "fewshot_library", "fiction", "folder_names", "guard", "llm", "migrations", "reasoners"),
    *("runs", "settings", "tools", "worlds"),
)


def refuse_clashes() -> None:
    """Raise ImportError with the first file or folder that Python takes for a part of Showhow."""
    for name in NAMES:
        # A folder without __init__.py has places, and no file.
        spec = None if name in sys.modules else find_spec(name)
        place = getattr(sys.modules[name], "__file__", None) if spec is None else spec.origin
        place = place or next(iter((spec and spec.submodule_search_locations) or ()), f"a module called {name}")
        if not Path(place).resolve().is_relative_to(ROOT):
            raise ImportError(f"{place} hides the part {name!r} of Showhow: rename it, or run your program elsewhere")
