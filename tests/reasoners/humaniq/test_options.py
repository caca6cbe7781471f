"""The options of agents, and the registry of reasoners."""

import json

import pytest

from showhow.fewshot_library.selection import SELECTION_MODES
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.reasoners.humaniq.late_fusion import LateFusion
from showhow.reasoners.humaniq.options import OPTION_CHOICES, SELECTION_DESCRIPTIONS, AgentOptions, AgentOptionsError
from showhow.reasoners.registry import REASONERS, UnknownReasoner, make_reasoner


def test_options_round_trip_for_every_choice() -> None:
    for option, names in OPTION_CHOICES.items():
        for name in names:
            setup = AgentOptions.from_mapping({option: name})
            assert AgentOptions.from_mapping(json.loads(json.dumps(setup.to_json()))) == setup


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"selection": "best"},
            "there is no selection 'best'; choose one of dpp, relevance, diversity, random, one, none",
        ),
        (
            {"sauces": "text"},
            "there is no option 'sauces'; there are selection, k, alpha, gamma, exchange, guard, pipeline",
        ),
        ({"k": -1}, "k is -1"),
        ({"context_tokens": 1_000}, "leaves no room"),
    ],
)
def test_the_error_of_invalid_options_names_the_choices(options: dict[str, object], why: str) -> None:
    with pytest.raises(AgentOptionsError, match=r"choose|there are|must be|raise") as error:
        AgentOptions.from_mapping(options)
    assert why in str(error.value)


def test_the_selection_option_maps_to_a_selection_config() -> None:
    wishes = {name: AgentOptions(selection=name, k=4, seed=7).selection_config() for name in SELECTION_DESCRIPTIONS}
    assert all(wish.mode in SELECTION_MODES for wish in wishes.values())
    assert {name: wish.k for name, wish in wishes.items()} == {
        "dpp": 4,
        "relevance": 4,
        "diversity": 4,
        "random": 4,
        "one": 1,
        "none": 0,
    }
    assert wishes["random"].seed == 7


def test_the_weights_and_the_exchange_of_the_dpp_are_options_of_the_reasoner() -> None:
    config = REASONERS["humaniq"].selection_config({"alpha": 5.0, "gamma": 0.5, "exchange": False, "guard": "entities"})
    assert (config.alpha, config.gamma, config.exchange, config.guard) == (5.0, 0.5, False, "entities")
    with pytest.raises(AgentOptionsError, match="alpha -1 and gamma 2 must lie between 0 and 100"):
        AgentOptions(alpha=-1.0)


@pytest.mark.parametrize("name", [name for name, entry in REASONERS.items() if entry.presets])
def test_a_preset_has_options_that_the_reasoner_takes(name: str) -> None:
    entry = REASONERS[name]
    for preset in entry.presets:
        options = entry.parse_options(entry.apply_preset(preset, {}))
        assert entry.build(options).name == name
        assert not entry.presets[preset].keys() & entry.hidden_options


def test_the_compared_sources_follow_the_options() -> None:
    assert AgentOptions().compared_sources == ("text", "graph", "model")
    assert AgentOptions(sources="text").compared_sources == ("text", "model")
    assert AgentOptions(own_answer=False).compared_sources == ("text", "graph")
    assert AgentOptions(response="none").compared_sources == ("text", "graph")


def test_reasoners_are_built_by_name_and_the_error_lists_the_names() -> None:
    assert make_reasoner("humaniq", {"k": 1}) == HumanIQ(AgentOptions(k=1))
    assert make_reasoner("fusion", {"merge": "random"}) == LateFusion(AgentOptions(merge="random"))
    assert all(make_reasoner(name).name == name for name in REASONERS)
    with pytest.raises(UnknownReasoner, match=", ".join(REASONERS)):
        make_reasoner("oracle")
