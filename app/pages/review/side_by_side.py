"""Traces of one question side by side: their steps aligned, and what differs marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest

import streamlit as st

from showhow.app.widgets.notebook import list_shown_arguments, status_label
from showhow.app.widgets.page_layout import escape_html
from showhow.app.widgets.table import shorten
from showhow.db.models import Project
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.review.review_queue import StepOutline, TraceToReview
from showhow.evaluation.value_format import format_count
from showhow.reasoners.answers.normalization import group_equal_answers
from showhow.tools.registry import tool_title

MAX_ROWS = 60
"""Rows of steps that are drawn; each trace has its own view with all of its steps."""
MAX_TEXT, MAX_RESULT = 300, 160
"""Characters of a thought or an argument, and of a result, in a cell."""
StepKey = tuple[object, ...]


def describe_step(step: StepOutline) -> StepKey:
    """What two steps have in common if they do the same: the tool with its arguments; the thought without a tool."""
    if step.tool is None:
        return (None, " ".join(step.thought.split()), step.is_error)
    return (step.tool, str(sorted(step.arguments.items())), step.is_error)


def align(sequences: Sequence[Sequence[StepKey]]) -> list[tuple[int | None, ...]]:
    """Align the sequences row by row: for each the index of its item in the row, None where it has none.

    Equal items share a row as far as their order allows; items between two such rows are paired in order.
    """
    rows: list[tuple[int | None, ...]] = [(index,) for index in range(len(sequences[0]))] if sequences else []
    keys = list(sequences[0]) if sequences else []
    for count, sequence in enumerate(sequences[1:], 1):
        wider: list[tuple[int | None, ...]] = []
        wider_keys: list[StepKey] = []
        for _, first, end, start, stop in SequenceMatcher(None, keys, sequence, autojunk=False).get_opcodes():
            for row, index in zip_longest(range(first, end), range(start, stop)):
                wider.append((*(rows[row] if row is not None else (None,) * count), index))
                wider_keys.append(keys[row] if row is not None else sequence[index])
        rows, keys = wider, wider_keys
    return rows


@lru_cache(maxsize=20_000)
def _group_texts(texts: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, group_equal_answers({text: text for text in sorted(texts)})))


def group_answers(project: Project, answers: Mapping[str, str]) -> list[list[str]]:
    """Group the keys of the answers by equal answers, the largest group first; as sets where answers are texts."""
    texts = frozenset(answers.values())
    is_text = AnswerFormat.from_json(project.answer_format).kind == AnswerKind.TEXT
    groups = _group_texts(texts) if is_text and len(texts) > 1 else tuple((text,) for text in sorted(texts))
    named = [[key for key, text in answers.items() if text in group] for group in groups]
    return sorted(named, key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class ComparedTrace:
    """A trace of the comparison, with its steps and the letter of its answer; equal answers have one letter."""

    trace: TraceToReview
    steps: Sequence[StepOutline]
    letter: str


def show_side_by_side(compared: Sequence[ComparedTrace], opened: object) -> None:
    """Draw the answers and the steps of the traces in columns; the column of the trace `opened` is marked."""
    rows = align([[describe_step(step) for step in column.steps] for column in compared])
    heads = "".join(
        f'<th scope="col"{" class=opened" if column.trace.id == opened else ""}>{escape_html(column.trace.author)} '
        f"<span>{escape_html(_describe_state(column.trace))}</span></th>"
        for column in compared
    )
    differ = len({column.letter for column in compared}) > 1
    answers = "".join(
        f'<td{" class=differs" if differ else ""}><b class="letter">{column.letter}</b> '
        f"{escape_html(shorten(column.trace.answer or 'none', MAX_TEXT))}</td>"
        for column in compared
    )
    verdict = "answers differ" if differ else "same answer"
    body = "".join(_render_row(compared, row) for row in rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        more = format_count(len(rows) - MAX_ROWS, "more row")
        body += f'<tr><td colspan="{len(compared) + 1}">and {more}; each trace below has all of its steps</td></tr>'
    st.html(
        '<div class="sides" role="region" tabindex="0" aria-label="Traces side by side"><table>'
        f'<thead><tr><th scope="col"><span>{format_count(len(compared), "trace")}</span></th>{heads}</tr></thead>'
        f'<tbody><tr class="answer"><th scope="row">{verdict}</th>{answers}</tr>{body}</tbody></table></div>'
    )


def _describe_state(trace: TraceToReview) -> str:
    state = "resubmitted" if trace.is_resubmitted and trace.status == "submitted" else status_label(trace.status)
    rating = f", rated {trace.mean_rating:.1f}" if trace.mean_rating is not None else ""
    return f"{state}, {format_count(trace.steps, 'step')}{rating}"


def _render_row(compared: Sequence[ComparedTrace], row: tuple[int | None, ...]) -> str:
    """One row of steps: a single cell for a step that all traces have, else a cell for each, with what differs."""
    steps = [None if index is None else column.steps[index] for column, index in zip(compared, row, strict=True)]
    present = [step for step in steps if step is not None]
    numbers = "/".join("–" if step is None else str(step.position) for step in steps)
    label = numbers if len({step and step.position for step in steps}) > 1 else str(present[0].position)
    is_same = len(present) == len(steps) and len({describe_step(step) for step in present}) == 1
    if is_same and len({(step.thought, step.result) for step in present}) == 1:
        cells = f'<td class="same" colspan="{len(compared)}">{_render_step(present[0])}</td>'
    else:
        mark = "" if is_same else ' class="differs"'
        nothing = "<td class=nothing>no such step</td>"
        cells = "".join(nothing if step is None else f"<td{mark}>{_render_step(step)}</td>" for step in steps)
    return f'<tr><th scope="row">{label}<span>{"same" if is_same else "differs"}</span></th>{cells}</tr>'


def _render_step(step: StepOutline) -> str:
    thought = f'<p class="why">{escape_html(shorten(step.thought, MAX_TEXT))}</p>' if step.thought else ""
    result = f"<p{' class=wrong' if step.is_error else ''}>→ {escape_html(shorten(step.result, MAX_RESULT))}</p>"
    action = f"<p>{_render_action(step)}</p>" if step.tool is not None else ""
    return f"{thought}{action}{result if step.result else ''}"


def _render_action(step: StepOutline) -> str:
    arguments = ", ".join(
        f"{escape_html(label)}: {escape_html(shorten(value, MAX_TEXT))}"
        for _, label, value in list_shown_arguments(step)
    )
    return f"<b>{escape_html(tool_title(step.tool or ''))}</b> {arguments}"
