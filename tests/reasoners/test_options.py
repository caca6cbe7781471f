"""The options of all reasoners: fixed choices are checked by one rule, and defaults rest on sources."""

import pytest

from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS

CHOICES = [
    (entry.name, option.name)
    for entry in REASONERS.values()
    for option in entry.own_options
    if option.metadata.get("choices")
]
BY_NAME = {"cot-sc", "react-cot-sc", "cot-sc-react"}
"""Methods that are a vote of what the model knows, alone or beside ReAct."""


@pytest.mark.parametrize(("reasoner", "option"), CHOICES)
def test_a_choice_that_there_is_not_is_refused_with_those_there_are(reasoner: str, option: str) -> None:
    entry = REASONERS[reasoner]
    choices = next(known.metadata["choices"] for known in entry.own_options if known.name == option)
    with pytest.raises(AgentOptionsError) as refused:
        entry.parse_options({option: "purple"})
    assert str(refused.value) == f"there is no {option} 'purple'; choose one of {', '.join(choices)}"


@pytest.mark.parametrize("reasoner", REASONERS)
def test_by_default_no_method_that_reads_sources_answers_from_own_knowledge(reasoner: str) -> None:
    options = REASONERS[reasoner].parse_options({})
    assert getattr(options, "own", "never") == "never"
    if hasattr(options, "samples") and reasoner not in BY_NAME and not hasattr(options, "own"):
        assert options.samples == 0
