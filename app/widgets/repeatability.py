"""Whether a trace can be repeated: on its own question, and on others, by the origins of its arguments."""

import streamlit as st

from app.widgets.page_layout import escape_markdown
from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import TYPED_ORIGIN, BrokenOrigin, rebuild_argument, split_argument
from tools.registry import argument_label


def show_repeatability(record: TraceRecord) -> None:
    """Draw whether the trace runs again on its own question, and which arguments would stay the same on others."""
    if any(step.tool for step in record.steps):
        st.caption(describe_repeatability(record))


def describe_repeatability(record: TraceRecord) -> str:
    """Say in Markdown whether the trace runs again on its own question, and which arguments are linked to nothing."""
    data = {step.position: step.data or {} for step in record.steps}
    steps = [step for step in record.steps if step.tool is not None and step.error is None]
    broken = [step for step in steps if not _is_rebuilt(step, record.question.full_text, data)]
    if broken:
        return (
            f":material/link_off: **Does not run again:** what {_name_steps(broken)} took from the question or from an "
            "earlier step is not there. Run it again with a value that is."
        )
    unlinked = [f"*{escape_markdown(label)}* of step {step.position}" for step in steps for label in _find_typed(step)]
    if not unlinked:
        return (
            ":material/link: **Runs again on its own question.** Every argument is linked, so other names can take the "
            "places of these."
        )
    return (
        ":material/link_off: **Runs again on its own question.** Typed, so the same for other names: "
        f"{', '.join(unlinked)}. Words of the question and values of results are linked by themselves."
    )


def _is_rebuilt(step: Step, question: str, data: dict[int, dict[str, object]]) -> bool:
    """Whether the origins of the step's arguments lead to their values."""
    try:
        return all(
            rebuild_argument(value, step.origins.get(name, TYPED_ORIGIN), question, data) == value
            for name, value in step.arguments.items()
        )
    except BrokenOrigin:
        return False


def _find_typed(step: Step) -> list[str]:
    """The labels of the texts among the step's arguments of which no part has an origin."""
    return [
        argument_label(step.tool, name)
        for name, value in step.arguments.items()
        if isinstance(value, str | list)
        and value
        and all(origin == TYPED_ORIGIN for _, origin in split_argument(value, step.origins.get(name, TYPED_ORIGIN)))
    ]


def _name_steps(steps: list[Step]) -> str:
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(str(step.position) for step in steps)}"
