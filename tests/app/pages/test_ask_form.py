"""A run that is continued or asked again has the limits of its own reasoner."""

import pytest
from streamlit.testing.v1 import AppTest

from runs.budget import RunLimits

# Each reasoner has its own step field; that of fusion is not shown.
SCRIPT = """
import streamlit as st

from app.pages.ask.form import limits_in_form
from db.trace_configuration import TraceConfiguration

st.session_state["ask_steps_humaniq"] = 20
st.session_state["ask_steps_replay"] = 300
names = ("replay", "humaniq", "fusion")
st.session_state["limits"] = {name: limits_in_form(name, TraceConfiguration(reasoner=name)) for name in names}
"""


@pytest.mark.parametrize(("reasoner", "steps"), [("replay", 300), ("humaniq", 20), ("fusion", 20)])
def test_a_run_is_continued_with_the_step_limit_of_its_own_reasoner(reasoner: str, steps: int) -> None:
    page = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert not page.exception
    assert page.session_state["limits"][reasoner] == RunLimits(steps=steps, seconds=None)
