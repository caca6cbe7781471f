"""Live worlds: Wikipedia and Wikidata, or any MediaWiki, SPARQL endpoint and web search, over a recording HTTP client.

Presets are descriptions of live worlds that come with Showhow, one world.toml each in presets/.
"""

from pathlib import Path

from showhow.worlds.folder import WorldError

PRESETS_FOLDER = Path(__file__).parent / "presets"


def list_presets() -> list[str]:
    """The names of the presets."""
    return sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml"))


def read_preset(name: str) -> str:
    """The text of a preset; WorldError lists the names if there is none of that name."""
    names = list_presets()
    if name not in names:
        raise WorldError(f"There is no preset {name!r}; there are {', '.join(names)}.")
    return (PRESETS_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
