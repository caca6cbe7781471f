"""The form of the answer that ends a trace: an answer, or the reason why the question cannot be answered."""

from functools import partial

import streamlit as st

from showhow.app.pages.annotate.composer import REASON_FIELD, StepComposer, show_argument_field, value_field_name
from showhow.db.questions.answer_formats import AnswerKind
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable


def show_answer_form(composer: StepComposer) -> None:
    """Draw the answer form."""
    for parameter in composer.answer_parameters:
        default = partial(parameter.format, parameter.default)
        show_argument_field(parameter, composer.key(value_field_name(parameter)), default)
    is_json = composer.answer_format.kind == AnswerKind.JSON
    is_off = composer.unanswerable_reason is not None
    for name, (label, hint) in composer.answer_fields.items():
        key = composer.key(name)
        if name == "final_thought":
            _show_reason(composer)
            st.text_area(label, key=key, placeholder=hint, height=90)
        elif name == "final_answer" and is_json:
            st.text_area(label, key=key, placeholder=hint, height=120, disabled=is_off)
        else:
            st.text_input(label, key=key, placeholder=hint, disabled=is_off)


def _show_reason(composer: StepComposer) -> None:
    """Draw the choice of a reason why no answer is right, and the answer that it stands for."""
    if not composer.takes_answer:
        return
    st.selectbox(
        "Cannot be answered",
        [str(reason) for reason in UnanswerableReason if reason.is_stated],
        index=None,
        key=composer.key(REASON_FIELD),
        format_func=str.capitalize,
        placeholder="Choose why, if no answer is right",
    )
    if reason := composer.unanswerable_reason:
        st.caption(f"The answer: {write_unanswerable(reason)} A comment may go into the final thought.")
