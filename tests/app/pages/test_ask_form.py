"""The form of Ask: the limits of each reasoner, and the sentence on what a reasoner does, costs and needs."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from showhow.app.pages.ask.form import describe_reasoner
from showhow.db.run_spec import RunLimits
from showhow.reasoners.registry import REASONERS, ReasonerEntry
from showhow.tools.registry import name_tools_by_title

# Each reasoner has its own step field; that of fusion is not shown.
SCRIPT = """
import streamlit as st

from showhow.app.pages.ask.form import limits_in_form
from showhow.db.run_spec import RunLimits, RunSpec

st.session_state["ask_steps_humaniq"] = 20
st.session_state["ask_steps_replay"] = 300
names = ("replay", "humaniq", "fusion")
unlimited = RunLimits(steps=None, seconds=None)
st.session_state["limits"] = {name: limits_in_form(name, RunSpec(reasoner=name, limits=unlimited)) for name in names}
"""


@pytest.mark.parametrize(("reasoner", "steps"), [("replay", 300), ("humaniq", 20), ("fusion", 20)])
def test_a_run_is_continued_with_the_step_limit_of_its_own_reasoner(reasoner: str, steps: int) -> None:
    page = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert not page.exception
    assert page.session_state["limits"][reasoner] == RunLimits(steps=steps, seconds=None)


@pytest.mark.parametrize("entry", REASONERS.values(), ids=list(REASONERS))
def test_one_sentence_says_what_a_reasoner_does_what_it_costs_and_what_it_needs(entry: ReasonerEntry) -> None:
    assert entry.cost
    assert entry.needs
    sentence = describe_reasoner(entry).replace("\\", "")
    assert sentence.endswith(".")
    assert entry.description in sentence
    assert f"it costs {entry.cost}, and needs {name_tools_by_title(entry.needs)}." in sentence


OPTIONS_SCRIPT = """
import streamlit as st

from showhow.app.pages.ask.form import seed_ask_form
from showhow.app.widgets.reasoner_form import show_options
from showhow.reasoners.registry import REASONERS

seed_ask_form(None, None, has_model=True)
st.session_state["options"] = {
    entry.name: show_options("ask", entry) for entry in REASONERS.values()
}
"""


def test_every_option_of_a_reasoner_is_a_field_with_its_default_and_its_choices() -> None:
    page = AppTest.from_string(OPTIONS_SCRIPT, default_timeout=60).run()
    assert not page.exception
    explanations = [caption.value.replace("\\", "") for caption in page.caption]
    assert len(explanations) == len(page.number_input) + len(page.checkbox)
    assert any("0 chooses it so that at most 3 % of the library's answers" in text for text in explanations)
    assert all("_" not in field.label for field in (*page.number_input, *page.selectbox))
    for entry in REASONERS.values():
        options = page.session_state["options"][entry.name]
        assert entry.parse_options(options) == entry.parse_options({})
    (own,) = [box for box in page.selectbox if box.key == "ask_atomr_own"]
    assert [option.partition(":")[0] for option in own.options] == ["never", "fallback", "free"]
    page.number_input(key="ask_geek_explore").set_value(4)
    own.select("fallback")
    page.run()
    assert page.session_state["options"]["geek"]["explore"] == 4
    assert page.session_state["options"]["atomr"]["own"] == "fallback"


PRESET_SCRIPT = """
import streamlit as st

from showhow.app.widgets.reasoner_form import show_options, show_preset
from showhow.reasoners.registry import REASONERS

preset = show_preset("verify", REASONERS["atomr"])
st.session_state["chosen"] = preset, show_options("verify", REASONERS["atomr"])
"""


def test_a_preset_fills_the_fields_of_the_options_and_what_is_changed_then_replaces_them(monkeypatch) -> None:
    published = {"published": {"own": "fallback", "passages": 5}}
    monkeypatch.setitem(REASONERS, "atomr", replace(REASONERS["atomr"], presets=published))
    page = AppTest.from_string(PRESET_SCRIPT, default_timeout=60).run()
    defaults = page.session_state["chosen"][1]
    assert page.session_state["chosen"][0] == "showhow"
    page.selectbox(key="verify_atomr_preset").select("published").run()
    assert page.session_state["chosen"] == ("published", defaults | published["published"])
    page.number_input(key="verify_atomr_passages").set_value(7).run()
    assert page.session_state["chosen"][1]["passages"] == 7
    page.selectbox(key="verify_atomr_preset").select("showhow").run()
    assert page.session_state["chosen"] == ("showhow", defaults)
