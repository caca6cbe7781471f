"""What an unknown word may mean: the relations whose names are nearest to it."""

from collections.abc import Sequence

from tools.grammar.paths import Atom, Hop, Path
from tools.tool import Encode
from worlds.source import Relation

NEAR = 0.35
OFFERED = 4
FAR_FETCHED = 4.0


class Meaning:
    """Guesses relations for a phrase; the encoder is asked when the first phrase comes."""

    def __init__(self, relations: Sequence[Relation], encode: Encode) -> None:
        self._relations = list(dict.fromkeys(relations))
        self._encode = encode

    def __call__(self, phrase: str) -> tuple[Path, ...]:
        """The nearest relations as paths, nearest first; () when none is near."""
        names = [(name, place) for place, r in enumerate(self._relations) for name in (r.label, *r.aliases)]
        if not names:
            return ()
        rows = self._encode([phrase, *(name for name, _ in names)])
        likeness: dict[int, float] = {}
        for (_, place), like in zip(names, rows[1:] @ rows[0], strict=True):
            likeness[place] = max(likeness.get(place, 0.0), float(like))
        nearest = sorted(likeness.items(), key=lambda pair: -pair[1])[:OFFERED]
        return tuple(self._path(place, like) for place, like in nearest if like >= NEAR)

    def _path(self, place: int, like: float) -> Path:
        relation = self._relations[place]
        return Path((Hop((Atom(relation),)),), relation.label, FAR_FETCHED * (1.0 - like))
