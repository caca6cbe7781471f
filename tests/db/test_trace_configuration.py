"""The typed configuration: any stored value is read without an error and written back unchanged."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from db.trace_configuration import DemonstrationReference, TraceConfiguration

ID = str(uuid4())
RUN_CONFIG = {"reasoner": "humaniq", "options": {"k": 3}, "library": "default:2"}
ASKED: dict[str, Any] = {
    "way": RUN_CONFIG,
    "limits": {"steps": 20},
    "worker": "1:2:host",
    "model": "gpt-4.1",
    "demonstrations": [{"id": ID, "question": "Who?"}],
    "form": "text",
    "demonstrations_shown": 1,
    "response": None,
    "unwritten": "The model did not answer.",
    "links": [{"start": 0}],
    "agreement": {
        "state": "all",
        "words": "All agree.",
        "answers": {"text": "Ada", "graph": None},
        "agreeing": ["text"],
    },
    "replay": {"alignment": {"holes": []}, "demonstrations": [{"id": ID, "question": "Who?"}]},
}
VERIFIED = {
    **RUN_CONFIG,
    "project_id": ID,
    "questions": [ID, ID],
    "most": None,
    "limits": {},
    "again_of": ID,
}
GENERATED = {"generated": True, "needs": ["text"], "hash": "abc"}
IMPORTED = {"tools": [{"type": "function"}], "openai": {"id": 3}, "file": "x.json"}


@pytest.mark.parametrize("document", [{}, ASKED, VERIFIED, GENERATED, IMPORTED])
def test_a_stored_configuration_is_written_back_unchanged(document):
    assert TraceConfiguration.from_json(document).to_json() == document


def test_the_values_are_attributes():
    configuration = TraceConfiguration.from_json(ASKED)
    assert (configuration.reasoner, configuration.options, configuration.library) == ("humaniq", {"k": 3}, "default:2")
    assert configuration.demonstrations == (DemonstrationReference(UUID(ID), "Who?"),)
    assert (configuration.response, configuration.response_error, configuration.prompt_format) == (
        None,
        "The model did not answer.",
        "text",
    )
    assert configuration.followed_demonstrations == {ID}
    assert configuration.agreement is not None
    assert configuration.agreement.answers == {"text": "Ada", "graph": None}
    verified = TraceConfiguration.from_json(VERIFIED)
    assert (verified.reasoner, verified.is_nested, verified.questions) == ("humaniq", False, (UUID(ID), UUID(ID)))
    assert (verified.repeats, verified.question_limit, verified.limits) == (UUID(ID), None, {})


def test_an_empty_selection_differs_from_no_selection_yet():
    assert TraceConfiguration.from_json({}).demonstrations is None
    none_selected = TraceConfiguration.from_json({"demonstrations": []})
    assert none_selected.demonstrations == ()
    assert none_selected.to_json() == {"demonstrations": []}


def test_a_changed_value_is_written_under_its_stored_key_and_replaces_an_explicit_null():
    changed = replace(TraceConfiguration.from_json(VERIFIED), question_limit=5, worker="w", library="default:3")
    assert changed.to_json() == {**VERIFIED, "most": 5, "worker": "w", "library": "default:3"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(ID),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*RUN_CONFIG, "id", "x"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*ASKED, *VERIFIED, *GENERATED, *IMPORTED]), VALUES))
@example({"way": None, "reasoner": ""})
@example({"reasoner": "humaniq", "library": None})
def test_any_configuration_is_written_back_unchanged(document):
    assert TraceConfiguration.from_json(document).to_json() == document
