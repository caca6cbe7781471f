"""Why each demonstration was picked, in words."""

from collections.abc import Iterator
from math import exp

from app.components.plain import plain_html
from fewshot_library.dpp import Pick
from fewshot_library.library import Chosen, OpenLibrary

NEAR = (
    (0.95, "asks the same"),
    (0.7, "asks nearly the same"),
    (0.4, "is about related things"),
    (0.2, "is loosely related"),
)
NEW = (
    (0.9, "does something quite different from the picks before it"),
    (0.6, "does much that the picks before it do not"),
    (0.25, "does something that the picks before it do not"),
    (0.01, "does nearly what the picks before it do"),
)
CLOSE, CLEAR = 0.1, 0.7
"""Leads up to which a choice was close, and from which it was clear."""


def reasons(chosen: Chosen, library: OpenLibrary, place: int) -> str:
    """The reasons of the pick at that place as HTML; the texts of people in it are escaped."""
    pick = chosen.selection.picks[place]
    cosine = float(chosen.selection.cosines[pick.item])
    rows = [
        ("Relevance", f"{cosine:.2f}", _bar(cosine), f"its question {_word(cosine, NEAR, 'is about something else')}"),
        ("Novelty", f"{pick.novelty:.2f}", _bar(pick.novelty), _novelty(pick, place)),
        ("Gain", _signed(pick.gain), "", _gain(pick)),
        *_runner_up(pick, library, by_weight=chosen.selection.wish.mode == "dpp"),
    ]
    steps = "".join(f"<li>{plain_html(tool)}</li>" for tool in chosen.demonstrations[place].tools)
    told = "".join(
        f"<tr><th scope='row'>{name}</th><td class='number'>{number}</td><td>{bar}{words}</td></tr>"
        for name, number, bar, words in rows
    )
    return f"<ol class='actions' aria-label='Its actions'>{steps}</ol><table class='reasons'>{told}</table>"


def _novelty(pick: Pick, place: int) -> str:
    if place == 0:
        return "nothing is picked before it"
    return f"it {_word(pick.novelty, NEW, 'does the very same as the picks before it')}"


def _gain(pick: Pick) -> str:
    if pick.filled:
        return "nothing new: it is there by relevance alone, since fewer demonstrations differ than were asked for"
    factor = exp(min(pick.gain, 30))
    if factor < 1:
        return f"the set weighs less with it: {factor:.2g} times as much"
    return f"the set weighs {factor:,.1f} times as much with it" if factor < 1e6 else "the set weighs far more with it"


def _runner_up(pick: Pick, library: OpenLibrary, *, by_weight: bool) -> Iterator[tuple[str, str, str, str]]:
    if pick.runner_up is None or pick.lead is None:
        return
    second = plain_html(library.demonstrations[pick.runner_up].question)
    if pick.lead < 0 and by_weight and not pick.filled:
        how = "would have gained more here; all picks together weigh more this way"
    elif pick.lead < 0:
        how = "would have gained more here: the DPP would rather have taken it"
    elif pick.lead < CLOSE:
        how = "nearly a tie"
    else:
        how = "a clear choice" if pick.lead >= CLEAR else "a close choice"
    yield "Runner-up", "", "", f"“{second}”"
    yield "Lead", _signed(pick.lead), "", how


def _signed(number: float) -> str:
    return f"{number:+.2f}" if abs(number) != float("inf") else "none"


def _word(value: float, words: tuple[tuple[float, str], ...], least: str) -> str:
    return next((word for bound, word in words if value >= bound), least)


def _bar(share: float) -> str:
    width = round(100 * min(max(share, 0.0), 1.0))
    return f"<span class='bar' aria-hidden='true'><span style='width:{width}%'></span></span>"
