"""In which order failures are worth a repair: where the library is thin and failures are many, first.

Of a kind of question with `failed` failures that nobody repairs yet and `shown` demonstrations or repairs, the next
repair is worth failed / (1 + shown): it may help that many questions, and the less the more is shown already. The kind
where that is most comes first; each one that is taken counts as shown from then on, so that kinds take turns as their
worth falls. Within a kind the order of the questions stays.
"""

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Kind = TypeVar("Kind", bound=Hashable)


def teaching_order(kinds: Sequence[Kind], shown: Mapping[Kind, int]) -> list[int]:
    """The places of the failures, given the kind of each and how many demonstrations each kind has; ties by place."""
    left: dict[Kind, deque[int]] = {}
    for place, kind in enumerate(kinds):
        left.setdefault(kind, deque()).append(place)
    known = Counter(dict(shown))
    order: list[int] = []
    while left:
        kind = max(left, key=lambda each: worth(len(left[each]), known[each]))
        order.append(left[kind].popleft())
        known[kind] += 1
        if not left[kind]:
            del left[kind]
    return order


def worth(failed: int, shown: int) -> float:
    """What the next repair of a kind is worth."""
    return failed / (1 + shown)
