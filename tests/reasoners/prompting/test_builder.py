"""Prompts fit the context window and are reduced by the documented rule."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.db.models import Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.encoder import SentenceEncoder
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.chat import to_json_text
from showhow.llm.types import Message
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.prompting.builder import PromptBuilder, PromptFormat, PromptTooLong
from showhow.reasoners.prompting.chat_format import ChatFormat
from showhow.reasoners.prompting.react_format import ReActFormat
from showhow.reasoners.prompting.run_state import count_tool_tokens
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import SourceKind, ToolContext
from showhow.worlds.source import World
from tests.examples import examples
from tests.fixtures.harbour import no_meaning
from tests.reasoners.example_traces import QUESTION, StepFields, record_of, steps_of

FORMS = [ReActFormat(), ChatFormat()]
OFFERED = [tool for tool in BUILT_IN_TOOLS.values() if tool.source is not SourceKind.WEB]
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
    """The token count by the documented rule: three bytes a token, four tokens around each message and call."""
    parts = [[message.text] for message in messages]
    parts += [[call.name, to_json_text(call.arguments)] for message in messages for call in message.calls]
    message_tokens = sum(4 + sum(-(-len(text.encode()) // 3) for text in texts) for texts in parts)
    return message_tokens + count_tool_tokens(form.tool_declarations(OFFERED, "both"))


@given(st.sampled_from(FORMS), RECORDS, STEPS, st.integers(1_600, 8_000))
@settings(max_examples=examples(40))
def test_a_prompt_fits_the_context_window_or_raises_prompt_too_long(
    form: PromptFormat, records: list[TraceRecord], taken: list[StepFields], context_tokens: int
) -> None:
    setup = AgentOptions(context_tokens=context_tokens, reply_tokens=500)
    steps = steps_of(taken)
    try:
        messages = prompting(form, records, setup).build_messages(steps)
    except PromptTooLong:
        # Not even the last two steps fit, with the shortest observations and without demonstrations.
        least = prompting(form, [], AgentOptions(observation_tokens=60)).build_messages(steps[-2:])
        assert size(form, least) + 2 * 30 > context_tokens - 500
        return
    assert size(form, messages) <= context_tokens - 500
    text = "\n".join(message.text for message in messages)
    assert "Answer the question by asking the sources" in text
    assert QUESTION in text
    assert next(message for message in messages if QUESTION in message.text).role == "user"


def shown(messages: list[Message]) -> str:
    return "\n".join(message.text for message in messages)


LINES = "\n".join(f"Row {number} of what was seen" for number in range(60))


def long_one(name: str) -> TraceRecord:
    steps: list[StepFields] = [
        (f"{name} {n}.", "wikisearch", {"query": f"{name} {n}"}, f"{name}{n}\n{LINES}", None) for n in range(4)
    ]
    return record_of(f"What of {name}?", steps, final_answer="that")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_demonstrations_are_reduced_in_the_documented_order(form: PromptFormat) -> None:
    """As the window shrinks: their observations, the last one's first, then demonstrations, the last one first."""
    records = [long_one(name) for name in ("Ash", "Elm", "Oak")]
    states = []
    for room in range(30_000, 1_000, -50):
        setup = AgentOptions(context_tokens=room, reply_tokens=100)
        try:
            prompt = shown(prompting(form, records, setup).build_messages([]))
        except PromptTooLong:
            break
        whole = prompt.count("Row 30 of what was seen")
        kept = tuple(name for name in ("Ash", "Elm", "Oak") if f"What of {name}?" in prompt)
        states.append((kept, whole))
    seen = [state for state, _ in itertools.groupby(states)]
    three, two, one = ("Ash", "Elm", "Oak"), ("Ash", "Elm"), ("Ash",)
    assert seen == [(three, 12), (three, 8), (three, 4), (three, 0), (two, 0), (one, 0), ((), 0)]


def own_steps(count: int) -> list[Step]:
    return steps_of(
        [("Own.", "wikisearch", {"query": f"own {n}"}, f"Own{n}\n{LINES}", None) for n in range(1, count + 1)]
    )


def common_prefix(form: PromptFormat, first: list[Message], second: list[Message]) -> float:
    """The common beginning of two prompts, as a share of the shorter one, in tokens; it may end within a message."""
    declared = count_tool_tokens(form.tool_declarations(OFFERED, "both"))
    written = [
        [to_json_text([m.role, m.text, [[c.id, c.name, c.arguments] for c in m.calls], m.answers]) for m in prompt]
        for prompt in (first, second)
    ]
    one, other = ("\n".join(prompt) for prompt in written)
    ends = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    shared = len(one[: next(ends, min(len(one), len(other)))].encode())
    shorter = min(len(one.encode()), len(other.encode()))
    return (declared * 3 + shared) / (declared * 3 + shorter)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("context_tokens", [8_192, 16_384, 32_768, 200_000])
def test_consecutive_prompts_of_a_run_of_30_steps_have_a_common_beginning(
    form: PromptFormat, context_tokens: int
) -> None:
    setup = AgentOptions(context_tokens=context_tokens)
    builder = prompting(form, [long_one("Ash"), long_one("Elm"), long_one("Oak")], setup)
    steps = own_steps(30)
    prompts = [builder.build_messages(steps[:count]) for count in range(31)]
    shares = [common_prefix(form, before, after) for before, after in itertools.pairwise(prompts)]
    assert min(shares) >= 0.95
    assert "What of Ash?" in shown(prompts[-1])
    assert all(f"own {n}" in str(prompts[-1]) for n in range(1, 31))
    assert all(size(form, prompt) <= setup.prompt_tokens for prompt in prompts)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_window_too_small_for_the_run_is_made_free_rarely_and_only_among_the_steps(form: PromptFormat) -> None:
    setup = AgentOptions(context_tokens=5_400)
    builder = prompting(form, [long_one("Ash")], setup)
    steps = own_steps(60)
    prompts = [builder.build_messages(steps[:count]) for count in range(61)]
    shares = [common_prefix(form, before, after) for before, after in itertools.pairwise(prompts)]
    opening = shown(prompts[0])
    assert all(shown(prompt).startswith(opening.removesuffix("Thought:").rstrip()) for prompt in prompts)
    assert sum(share < 0.95 for share in shares) <= len(shares) / 3
    assert all(f"Own{count}\n" in shown(prompt) for count, prompt in enumerate(prompts) if count)
    assert all(size(form, prompt) <= context_tokens_of(setup) for prompt in prompts)
    assert "steps are left out here" in shown(prompts[-1])


def context_tokens_of(setup: AgentOptions) -> int:
    return setup.prompt_tokens


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("context_tokens", [5_000, 16_384])
def test_a_resumed_run_builds_the_same_prompts(form: PromptFormat, context_tokens: int) -> None:
    setup, records, steps = AgentOptions(context_tokens=context_tokens), [long_one("Ash")], own_steps(40)
    whole = prompting(form, records, setup)
    for count in range(0, 41, 5):
        expected = whole.build_messages(steps[:count])
        assert prompting(form, records, setup).build_messages(steps[:count]) == expected


def test_early_observations_are_whole_in_an_ordinary_window() -> None:
    builder = prompting(ChatFormat(), [long_one("Ash")], AgentOptions())
    assert shown(builder.build_messages(own_steps(3))).count("Row 30 of what was seen") >= 3


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize(
    ("answer", "value"),
    [('{"born":  1931}', {"born": 1931}), ("in 1931", "in 1931"), ("NaN", "NaN"), ("[" * 5_000, "[" * 5_000)],
)
def test_an_answer_from_before_the_schema_of_answers_is_shown_as_a_text(
    form: PromptFormat, answer: str, value: object
) -> None:
    record = record_of("When?", [("Look.", "wikisearch", {"query": "Ada"}, "1931", None)], final_answer=answer)
    record.project.answer_format = {"kind": "json", "schema": {"type": "object"}}
    messages = prompting(form, [record], AgentOptions(context_tokens=100_000)).build_messages([])
    finished = [call.arguments["value"] for message in messages for call in message.calls if call.name == "finish"]
    assert finished == [value] if form.name == ChatFormat.name else f"Final Answer: {answer}" in shown(messages)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_demonstration_without_an_answer_ends_as_a_run_without_an_answer_is_to_end(form: PromptFormat) -> None:
    record = record_of("Book it.", [("Look.", "wikisearch", {"query": "Ada"}, "1931", None)], final_answer="")
    record.project.answer_format = {"kind": "none"}
    messages = prompting(form, [record], AgentOptions()).build_messages([])
    finished = [dict(call.arguments) for message in messages for call in message.calls if call.name == "finish"]
    if form.name == ChatFormat.name:
        assert finished == [{"thought": "", "found": True}]
    else:
        assert "\nFinal Answer: done\n" in shown(messages)
        assert not shown(messages).rstrip().endswith("Final Answer:")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("context_tokens", [4_096, 8_192, 16_384, 32_768])
def test_three_published_demonstrations_fit_the_context_window(
    published: Path, meaning: SentenceEncoder, form: PromptFormat, context_tokens: int
) -> None:
    setup = AgentOptions(context_tokens=context_tokens)
    for name in ("mintaka", "compmix"):
        records = [record for record in read_traces(published / f"{name}.json") if isinstance(record, TraceRecord)]
        own = max(records, key=lambda record: len(record.steps)).steps
        for start in range(0, len(records) - 3, 5):
            written = prompting(form, records[start : start + 3], setup, meaning)
            for count in range(0, len(own) + 1, 3):
                messages = written.build_messages(own[:count])
                assert size(form, messages) <= setup.prompt_tokens
                if context_tokens >= 16_384:
                    assert all(record.question.text in shown(messages) for record in records[start : start + 3])
