"""Prompts keep within what a model can take, whatever comes, and give way by the rule."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.models import Step
from db.trace_record import TraceRecord
from fewshot_library.encoder import SentenceEncoder
from fewshot_library.formats import read_traces
from fewshot_library.formats.chat import to_json_text
from llm.types import Message
from reasoners.base import Task
from reasoners.humaniq.options import AgentOptions
from reasoners.prompting import truncation
from reasoners.prompting.builder import PromptBuilder, PromptFormat, PromptTooLong
from reasoners.prompting.chat_format import ChatFormat
from reasoners.prompting.react_format import ReActFormat
from tests.examples import examples
from tests.fixtures.harbour import no_meaning
from tests.reasoners.told import QUESTION, Told, record_of, steps_of
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext
from worlds.source import World

FORMS = [ReActFormat(), ChatFormat()]
OFFERED = [tool for tool in BUILT_IN_TOOLS.values() if not tool.needs_web]
WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
LONG = st.builds(lambda line, times: "\n".join([line] * times), WORDS, st.integers(1, 80))
STEP = st.tuples(WORDS, st.just("wikisearch"), st.fixed_dictionaries({"query": WORDS}), LONG, st.none()) | st.tuples(
    WORDS, st.none(), st.just({}), st.none(), WORDS
)
STEPS = st.lists(STEP, max_size=8)
RECORDS = st.lists(st.builds(record_of, WORDS, st.lists(STEP, min_size=1, max_size=6), final_answer=WORDS), max_size=3)


def prompting(
    form: PromptFormat, records: list[TraceRecord], setup: AgentOptions, encode: object = no_meaning
) -> PromptBuilder:
    return PromptBuilder(form, Task(QUESTION, ToolContext(World("w"), encode), OFFERED, records), setup)  # type: ignore[arg-type]


def size(form: PromptFormat, messages: list[Message]) -> int:
    """Counted anew, as the rule is told: three bytes a token, four round each message and call."""
    parts = [[message.text] for message in messages]
    parts += [[call.name, to_json_text(call.arguments)] for message in messages for call in message.calls]
    taken = sum(4 + sum(-(-len(text.encode()) // 3) for text in each) for each in parts)
    return taken + truncation.count_tool_tokens(form.tool_declarations(OFFERED))


@given(st.sampled_from(FORMS), RECORDS, STEPS, st.integers(1_600, 8_000))
@settings(max_examples=examples(40))
def test_a_prompt_is_within_its_size_or_the_error_says_that_it_cannot_be(
    form: PromptFormat, records: list[TraceRecord], taken: list[Told], context_tokens: int
) -> None:
    setup = AgentOptions(context_tokens=context_tokens, reply_tokens=500)
    steps = steps_of(taken)
    try:
        messages = prompting(form, records, setup).build_messages(steps, OFFERED)
    except PromptTooLong:
        least = prompting(form, [], AgentOptions(observation_tokens=60)).build_messages(steps, OFFERED)
        assert size(form, least) > context_tokens - 500
        return
    assert size(form, messages) <= context_tokens - 500
    told = "\n".join(message.text for message in messages)
    assert "You find the answer to a question" in told
    assert QUESTION in told
    assert next(message for message in messages if QUESTION in message.text).role == "user"


def shown(messages: list[Message]) -> str:
    return "\n".join(message.text for message in messages)


LINES = "\n".join(f"Row {number} of what was seen" for number in range(60))


def long_one(name: str) -> TraceRecord:
    steps: list[Told] = [
        (f"{name} {n}.", "wikisearch", {"query": f"{name} {n}"}, f"{name}{n}\n{LINES}", None) for n in range(4)
    ]
    return record_of(f"What of {name}?", steps, final_answer="that")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_parts_give_way_in_the_order_that_the_rule_names(form: PromptFormat) -> None:
    """As the room shrinks: demonstrations' observations, the last one's first, demonstrations, the last first, then own
    observations, the oldest first.
    """
    records = [long_one(name) for name in ("Ash", "Elm", "Oak")]
    own = [(f"Own {n}.", "wikisearch", {"query": f"own {n}"}, f"Own{n}\n{LINES}", None) for n in range(4)]
    states = []
    for room in range(16_000, 1_500, -20):
        setup = AgentOptions(context_tokens=room, reply_tokens=100)
        try:
            told = shown(prompting(form, records, setup).build_messages(steps_of(own), OFFERED))
        except PromptTooLong:
            break
        whole = told.count("Row 30 of what was seen")
        kept = tuple(name for name in ("Ash", "Elm", "Oak") if f"What of {name}?" in told)
        states.append((kept, whole))
    seen = [state for state, _ in itertools.groupby(states)]
    three, two, one = ("Ash", "Elm", "Oak"), ("Ash", "Elm"), ("Ash",)
    order = [
        (three, 16),
        (three, 12),
        (three, 8),
        (three, 4),
        (two, 4),
        (one, 4),
        ((), 4),
        ((), 3),
        ((), 2),
        ((), 1),
        ((), 0),
    ]
    assert [state for state in order if state in seen] == seen
    assert {seen[0], seen[-1]} == {order[0], order[-1]}


def test_the_newest_observation_is_the_last_to_give_way() -> None:
    own = [(f"Own {n}.", "wikisearch", {"query": f"own {n}"}, f"Own{n}\n{LINES}", None) for n in range(4)]
    setup = AgentOptions(context_tokens=2_100, reply_tokens=100)
    told = shown(prompting(ChatFormat(), [], setup).build_messages(steps_of(own), OFFERED))
    assert told.count("Row 30 of") == 1
    assert told.index("Row 30 of") > told.index("Own3")


def test_what_gave_way_stays_away_while_a_run_goes_on() -> None:
    own: list[Step] = []
    asked = prompting(
        ChatFormat(), [long_one("Ash"), long_one("Elm")], AgentOptions(context_tokens=4_000, reply_tokens=100)
    )
    before: set[str] = {"Ash", "Elm"}
    for number in range(1, 9):
        own = steps_of([("Own.", "wikisearch", {"query": str(n)}, f"Own{n}\n{LINES}", None) for n in range(number)])
        told = shown(asked.build_messages(own, OFFERED))
        now = {name for name in ("Ash", "Elm") if f"What of {name}?" in told}
        assert now <= before
        before = now
        again = prompting(
            ChatFormat(), [long_one("Ash"), long_one("Elm")], AgentOptions(context_tokens=4_000, reply_tokens=100)
        )
        assert shown(again.build_messages(own, OFFERED)) == told
    assert before == set()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("context_tokens", [4_096, 8_192, 16_384, 32_768])
def test_three_of_the_published_demonstrations_keep_within_the_context(
    published: Path, meaning: SentenceEncoder, form: PromptFormat, context_tokens: int
) -> None:
    setup = AgentOptions(context_tokens=context_tokens)
    for name in ("mintaka", "compmix"):
        records = [each for each in read_traces(published / f"{name}.json") if isinstance(each, TraceRecord)]
        own = max(records, key=lambda record: len(record.steps)).steps
        for start in range(0, len(records) - 3, 5):
            written = prompting(form, records[start : start + 3], setup, meaning)
            for count in range(0, len(own) + 1, 3):
                messages = written.build_messages(own[:count], OFFERED)
                assert size(form, messages) <= context_tokens - setup.reply_tokens
                if context_tokens >= 16_384:
                    assert all(record.question.text in shown(messages) for record in records[start : start + 3])
