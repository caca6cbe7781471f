"""The bundled encoder, and the published demonstrations for Mintaka."""

import pytest

from showhow.db.traces.libraries import Demonstration
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fewshot_library.formats import read_traces


@pytest.fixture(scope="session")
def encoder():
    return SentenceEncoder(BUNDLED_MODEL)


@pytest.fixture(scope="session")
def demonstrations(shared_data):
    """The 20 published demonstrations for Mintaka."""
    return [to_demonstration(record) for record in read_traces(shared_data / "humaniq" / "mintaka.json")]


def to_demonstration(record):
    tools = tuple(step.tool for step in record.steps if step.tool)
    trace, question = record.trace, record.question
    return Demonstration(
        trace.id,
        question.id,
        question.text,
        "simple",
        None,
        "Mintaka",
        "real",
        "human",
        "ada",
        trace.final_answer,
        tools,
    )
