"""Explains in words why each demonstration was selected."""

from collections.abc import Iterator
from math import exp

from app.widgets.plain_text import escape_html
from fewshot_library.dpp import Pick
from fewshot_library.library import LoadedLibrary, SelectedDemonstrations

RELEVANCE_LEVELS = (
    (0.95, "asks the same"),
    (0.7, "asks nearly the same"),
    (0.4, "is related"),
    (0.2, "is loosely related"),
)
NOVELTY_LEVELS = (
    (0.9, "has very different actions from the earlier picks"),
    (0.6, "has mostly different actions from the earlier picks"),
    (0.25, "has some actions that the earlier picks lack"),
    (0.01, "has nearly the same actions as an earlier pick"),
)
CLOSE_LEAD, CLEAR_LEAD = 0.1, 0.7
"""Leads below the first are nearly a tie; leads from the second on are clear."""


def render_pick_reasons(selected: SelectedDemonstrations, library: LoadedLibrary, index: int) -> str:
    """Render the reasons of the pick with that index as HTML; all texts are escaped."""
    pick = selected.selection.picks[index]
    cosine = float(selected.selection.cosines[pick.item])
    rows = [
        (
            "Relevance",
            f"{cosine:.2f}",
            _render_bar(cosine),
            f"its question {_describe_level(cosine, RELEVANCE_LEVELS, 'is unrelated')}",
        ),
        ("Novelty", f"{pick.novelty:.2f}", _render_bar(pick.novelty), _describe_novelty(pick, index)),
        ("Gain", _format_signed(pick.gain), "", _describe_gain(pick)),
        *_runner_up_rows(pick, library, by_weight=selected.selection.config.mode == "dpp"),
    ]
    steps = "".join(f"<li>{escape_html(tool)}</li>" for tool in selected.demonstrations[index].tools)
    body = "".join(
        f"<tr><th scope='row'>{name}</th><td class='number'>{number}</td><td>{bar}{description}</td></tr>"
        for name, number, bar, description in rows
    )
    return f"<ol class='actions' aria-label='Its actions'>{steps}</ol><table class='reasons'>{body}</table>"


def _describe_novelty(pick: Pick, index: int) -> str:
    if index == 0:
        return "it is the first pick"
    return f"it {_describe_level(pick.novelty, NOVELTY_LEVELS, 'has the same actions as an earlier pick')}"


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
    question = escape_html(library.demonstrations[pick.runner_up].question)
    if pick.lead < 0 and by_weight and not pick.is_filler:
        comparison = "would have gained more here; the whole set's determinant is larger this way"
    elif pick.lead < 0:
        comparison = "would have gained more here: the DPP would have selected it"
    elif pick.lead < CLOSE_LEAD:
        comparison = "nearly a tie"
    else:
        comparison = "a clear choice" if pick.lead >= CLEAR_LEAD else "a close choice"
    yield "Runner-up", "", "", f"“{question}”"
    yield "Lead", _format_signed(pick.lead), "", comparison


def _format_signed(number: float) -> str:
    return f"{number:+.2f}" if abs(number) != float("inf") else "none"


def _describe_level(value: float, levels: tuple[tuple[float, str], ...], lowest: str) -> str:
    return next((description for bound, description in levels if value >= bound), lowest)


def _render_bar(share: float) -> str:
    width = round(100 * min(max(share, 0.0), 1.0))
    return f"<span class='bar' aria-hidden='true'><span style='width:{width}%'></span></span>"
