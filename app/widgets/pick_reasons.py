"""Explains in words why each demonstration was selected."""

from collections.abc import Iterator
from math import exp

from app.widgets.plain_text import escape_html
from fewshot_library.dpp import Pick
from fewshot_library.library import LoadedLibrary, SelectedDemonstrations

RELEVANCE_LEVELS = (
    (0.95, "asks the same"),
    (0.7, "asks nearly the same"),
    (0.4, "is about related things"),
    (0.2, "is loosely related"),
)
NOVELTY_LEVELS = (
    (0.9, "does something quite different from the picks before it"),
    (0.6, "does much that the picks before it do not"),
    (0.25, "does something that the picks before it do not"),
    (0.01, "does nearly what the picks before it do"),
)
CLOSE_LEAD, CLEAR_LEAD = 0.1, 0.7
"""Up to the first lead a choice was close, from the second on clear."""


def render_pick_reasons(chosen: SelectedDemonstrations, library: LoadedLibrary, place: int) -> str:
    """The reasons of the pick at that place as HTML; texts of people are escaped."""
    pick = chosen.selection.picks[place]
    cosine = float(chosen.selection.cosines[pick.item])
    rows = [
        (
            "Relevance",
            f"{cosine:.2f}",
            _render_bar(cosine),
            f"its question {_describe_level(cosine, RELEVANCE_LEVELS, 'is about something else')}",
        ),
        ("Novelty", f"{pick.novelty:.2f}", _render_bar(pick.novelty), _describe_novelty(pick, place)),
        ("Gain", _format_signed(pick.gain), "", _describe_gain(pick)),
        *_runner_up_rows(pick, library, by_weight=chosen.selection.config.mode == "dpp"),
    ]
    steps = "".join(f"<li>{escape_html(tool)}</li>" for tool in chosen.demonstrations[place].tools)
    body = "".join(
        f"<tr><th scope='row'>{name}</th><td class='number'>{number}</td><td>{bar}{words}</td></tr>"
        for name, number, bar, words in rows
    )
    return f"<ol class='actions' aria-label='Its actions'>{steps}</ol><table class='reasons'>{body}</table>"


def _describe_novelty(pick: Pick, place: int) -> str:
    if place == 0:
        return "nothing is picked before it"
    return f"it {_describe_level(pick.novelty, NOVELTY_LEVELS, 'does the very same as the picks before it')}"


def _describe_gain(pick: Pick) -> str:
    if pick.is_filler:
        return "nothing new: selected by relevance alone, since too few demonstrations differ"
    factor = exp(min(pick.gain, 30))
    if factor < 1:
        return f"adding it multiplies the set's determinant by {factor:.2g}"
    number = f"{factor:,.1f}" if factor < 1e6 else "more than a million"
    return f"adding it multiplies the set's determinant by {number}"


def _runner_up_rows(pick: Pick, library: LoadedLibrary, *, by_weight: bool) -> Iterator[tuple[str, str, str, str]]:
    if pick.runner_up is None or pick.lead is None:
        return
    second = escape_html(library.demonstrations[pick.runner_up].question)
    if pick.lead < 0 and by_weight and not pick.is_filler:
        how = "would have gained more here; the whole set's determinant is larger this way"
    elif pick.lead < 0:
        how = "would have gained more here: the DPP would have selected it"
    elif pick.lead < CLOSE_LEAD:
        how = "nearly a tie"
    else:
        how = "a clear choice" if pick.lead >= CLEAR_LEAD else "a close choice"
    yield "Runner-up", "", "", f"“{second}”"
    yield "Lead", _format_signed(pick.lead), "", how


def _format_signed(number: float) -> str:
    return f"{number:+.2f}" if abs(number) != float("inf") else "none"


def _describe_level(value: float, words: tuple[tuple[float, str], ...], least: str) -> str:
    return next((word for bound, word in words if value >= bound), least)


def _render_bar(share: float) -> str:
    width = round(100 * min(max(share, 0.0), 1.0))
    return f"<span class='bar' aria-hidden='true'><span style='width:{width}%'></span></span>"
