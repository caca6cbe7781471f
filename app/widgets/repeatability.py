"""Whether a trace can be repeated: on its own question, and with other names; and the links that it lacks."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.widgets.job_panel import REPEAT_JOB, explain_roles, may_start, show_verb_job, start_verb_job
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.db.database import StoreError
from showhow.db.models import Step
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, has_acting_role, register_user
from showhow.db.runs.repetitions import (
    FAILS,
    NEEDS_LINK,
    OTHER_NAMES,
    OWN_QUESTION,
    Repetition,
    Trial,
    link_arguments,
    read_repetition,
    store_repetition,
)
from showhow.db.traces.trace_record import NOT_TRIED, TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.repetition import read_state
from showhow.reasoners.linking import ArgumentToLink, LinkOffer, list_arguments_to_link
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.traces import RepeatTraces, repeat
from showhow.tools.registry import argument_label

STATE_LABELS = {
    OTHER_NAMES: "works for other names",
    OWN_QUESTION: "runs again on its own question",
    NEEDS_LINK: "needs a link",
    FAILS: "does not run again",
    NOT_TRIED: "not tried",
}
"""The page's words for the states of db/runs/repetitions.py."""
MAX_QUOTED = 60
"""Characters of a value or a question that are quoted."""
ChangeTrace = Callable[[Callable[[Any, UUID], Any]], Any]
"""Makes one change by the person in a transaction; a failure is shown."""


def show_repeatability(
    services: Services, record: TraceRecord, *, answer: str | None = None, change: ChangeTrace | None = None
) -> None:
    """Draw whether the trace can be repeated, the places to link its arguments to, and a button that tries it.

    `answer` is what is typed as the answer of a draft; `change` makes the changes of its author.
    """
    if not any(step.tool for step in record.steps):
        return
    known = read_repetition(record, record.trace.final_answer or "" if answer is None else answer)
    arguments = list_arguments_to_link(record)
    with st.container(key="repeatability", gap="small"):
        st.caption(describe_repeatability(record, known))
        if known is None or known.state != OTHER_NAMES:
            _show_offers(services, record, arguments, change)
        if change is not None or record.trace.status != "draft":
            _show_trial(services, record, answer)


def describe_repeatability(record: TraceRecord, known: Repetition | None = None) -> str:
    """Say in Markdown whether the trace can be repeated, and which arguments are linked to nothing."""
    repetition = known or read_state(record)
    tried = "".join(f"  \n{_describe_trial(trial)}" for trial in repetition.trials)
    if repetition.state == OTHER_NAMES:
        return f":material/done_all: **Works for other names.**{tried}"
    arguments = list_arguments_to_link(record)
    if repetition.state == FAILS:
        broken = [argument.step for argument in arguments if argument.is_broken]
        why = escape_markdown(format_sentence(repetition.why)) if repetition.why else ""
        if broken:
            why = (
                f"What {_name_steps(broken)} took from the question or from an earlier step is not there. "
                "Run it again with a value that is."
            )
        return f":material/link_off: **Does not run again.** {why}"
    note = f" Not tried with other names: {escape_markdown(repetition.why)}." if repetition.why else ""
    if not arguments:
        linked = (
            ""
            if repetition.trials or repetition.why
            else " Every argument is linked, so other names can take the places of these."
        )
        return f":material/link: **Runs again on its own question.**{linked}{note}{tried}"
    labels = ", ".join(
        f"*{escape_markdown(argument_label(a.step.tool, a.name))}* of step {a.step.position}" for a in arguments
    )
    return (
        f":material/link_off: **Runs again on its own question.** Typed, so the same for other names: {labels}. "
        f"Words of the question and values of results are linked by themselves.{note}{tried}"
    )


def remember_state(services: Services, trace_id: UUID) -> None:
    """Keep with a recorded trace what its links say, unless it was tried as it is."""
    with services.database.begin() as session:
        record = load_trace(session, trace_id)
        answer = record.trace.final_answer or ""
        if read_repetition(record, answer) is None and any(step.tool for step in record.steps):
            store_repetition(session, record, answer, read_state(record))


def _describe_trial(trial: Trial) -> str:
    question = f"“{escape_markdown(_shorten(trial.question, 2 * MAX_QUOTED))}”"
    if trial.answer is not None:
        return f"{question} → **{escape_markdown(_shorten(trial.answer))}**"
    return f"{question} is refused: {escape_markdown(trial.why)}."


def _name_steps(steps: list[Step]) -> str:
    positions = dict.fromkeys(str(step.position) for step in steps)
    return f"step{'s' if len(positions) > 1 else ''} {', '.join(positions)}"


def _shorten(text: str, limit: int = MAX_QUOTED) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _show_offers(
    services: Services, record: TraceRecord, arguments: list[ArgumentToLink], change: ChangeTrace | None
) -> None:
    """Draw a button for each place that an argument may be linked to."""
    offered = [argument for argument in arguments if argument.offers]
    if not offered or (change is None and not _may_link(services, record)):
        return
    for argument in offered:
        label = argument_label(argument.step.tool, argument.name)
        value = _shorten(str(argument.step.arguments[argument.name]))
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(
                f"*{escape_markdown(label)}* of step {argument.step.position}, “{escape_markdown(value)}”:",
                width="content",
            )
            for number, offer in enumerate(argument.offers):
                st.button(
                    f"Link to {escape_markdown(_describe_offer(offer, value))}",
                    key=f"link_{argument.step.id.hex}_{argument.name}_{number}",
                    icon=":material/add_link:",
                    on_click=_link,
                    args=(services, record, argument, offer, change),
                )


def _describe_offer(offer: LinkOffer, value: str) -> str:
    place = "the question" if offer.origin["from"] == "question" else f"step {offer.origin['step']}"
    text = _shorten(offer.text)
    return place if offer.origin["from"] == "question" or text == value else f"“{text}” of {place}"


def _may_link(services: Services, record: TraceRecord) -> bool:
    with services.database.read() as session:
        return record.trace.status != "draft" and has_acting_role(session, REVIEWER, ADMIN)


def _link(
    services: Services, record: TraceRecord, argument: ArgumentToLink, offer: LinkOffer, change: ChangeTrace | None
) -> None:
    """Store the link; a reviewer's keeps what the links then say, and a refusal is shown."""

    def store(session: Any, by: UUID) -> None:
        links = {argument.name: offer.origin}
        link_arguments(session, argument.step.id, links, seen=record.trace.version, by=by)

    if change is not None:
        change(store)
        return
    try:
        with services.database.begin() as session:
            actor = acting_person(session)
            if actor is not None:
                store(session, register_user(session, actor.name).id)
        remember_state(services, record.trace.id)
    except StoreError as error:
        st.toast(escape_markdown(format_sentence(str(error))), icon=":material/error:")


def _show_trial(services: Services, record: TraceRecord, answer: str | None) -> None:
    """Draw the button that tries the trace, or the job that does."""
    database, key = services.database, record.trace.id.hex
    name = f"{_shorten(record.question.summary)} ({key[-4:]})"
    if show_verb_job(database, REPEAT_JOB, name):
        return
    has_answer = bool(answer or record.trace.final_answer)
    is_refused = not may_start(database, REPEAT_JOB)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        question = st.text_input(
            "A question with other names",
            key=f"other_names_{key}",
            placeholder="A question with other names",
            label_visibility="collapsed",
            width="stretch",
        )
        if st.button(
            "Try other names",
            key=f"try_{key}",
            icon=":material/experiment:",
            disabled=is_refused or not has_answer,
            help=explain_roles(REPEAT_JOB)
            if is_refused
            else "Write the answer first."
            if not has_answer
            else "Runs its calls again on its own question, then on yours or on two with other names. Nothing changes.",
        ):
            request = RepeatTraces(traces=(key,), question=question.strip() or None, answer=answer or None)
            start_verb_job(database, REPEAT_JOB, name, dump_call(repeat, request))
            st.rerun()
