"""Libraries: of files in every format, of homes; their selections as prompts of several kinds."""

from pathlib import Path

import pytest
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    FewShotPromptTemplate,
    PromptTemplate,
)

from showhow import ExampleSelector, Library, ShowhowError
from showhow.fewshot_library.formats import FORMATS, find_writer
from showhow.fewshot_library.formats.format import TraceExport
from showhow.fewshot_library.library import SelectedDemonstrations
from showhow.fewshot_library.selection import SELECTION_MODES, SelectionConfig

QUESTION = "Who is the oldest sister of the mayor?"
BOTH_WAYS = [name for name, trace_format in FORMATS.items() if trace_format.read and trace_format.write]


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_file_of_every_format_is_a_library(name: str, village, tmp_path: Path):
    file = tmp_path / f"traces.{name}"
    records = [pick.record for pick in village.traces.select(QUESTION, k=4)]
    with file.open("wb") as stream:
        written = find_writer(name)(TraceExport(records), stream).written
    library = Library.load(file)
    assert written == len(library) == 4
    assert sorted(library.questions) == sorted(record.question.text for record in records)
    messages = library.select(QUESTION, k=2).as_messages()
    assert messages[-1] == {"role": "user", "content": QUESTION}


@pytest.mark.parametrize("mode", SELECTION_MODES)
def test_traces_in_memory_are_selected_as_those_of_a_version(mode: str, village):
    _, loaded = village.home.services.open_library("village:1")
    selected: SelectedDemonstrations = loaded.select(QUESTION, SelectionConfig(3, mode, seed=2))
    expected = selected.to_json(loaded)
    for library in (village.traces, village.library, Library.load("village", home=village.home)):
        picks = library.select(QUESTION, 3, mode, seed=2)
        assert [pick.id for pick in picks] == [pick["id"] for pick in expected["picks"]]
        assert [round(pick.relevance, 6) for pick in picks] == [pick["relevance"] for pick in expected["picks"]]
        assert [list(pick.actions) for pick in picks] == [pick["actions"] for pick in expected["picks"]]


def test_a_trace_is_the_same_demonstration_in_a_file_and_in_a_library(village):
    stored = {entry.trace_id: entry for entry in village.library._demonstrations}
    for entry in village.traces._demonstrations:
        assert entry == stored[entry.trace_id]


def test_a_selection_explains_itself(village):
    picks = village.library.select(village.library.questions[2], k=3)
    assert picks[0].question == village.library.questions[2]
    assert picks[0].relevance == pytest.approx(1)
    assert picks[0].explanation.startswith("relevance 1.000, novelty ")
    assert picks.to_frame()["question"].to_list() == [pick.question for pick in picks]
    others = village.library.select(village.library.questions[2], k=3, leave_out_itself=True)
    assert others.left_out == [village.library.questions[2]]
    assert village.library.questions[2] not in [pick.question for pick in others]


def test_messages_name_each_call_once_and_answer_it(village):
    messages = village.library.select(QUESTION, k=3).as_messages("Be brief.")
    assert messages[0] == {"role": "system", "content": "Be brief."}
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert calls == results
    assert len(set(calls)) == len(calls) > 3


def test_the_prompt_asks_another_question_or_none(village):
    picks = village.library.select(QUESTION, k=1)
    assert picks.as_messages(question="Why?")[-1]["content"] == "Why?"
    assert picks.as_messages(question="")[-1]["role"] == "assistant"
    assert picks.as_text().rstrip().endswith(f"Question: {QUESTION}\nThought:")
    assert QUESTION not in picks.as_text(question="Why?")
    assert (
        picks.as_text(question="").rstrip() == f"{picks.as_messages()[0]['content']}\n\n{picks[0].as_text().rstrip()}"
    )


def test_examples_of_dspy_have_the_steps_as_their_trajectory(village):
    picks = village.library.select(QUESTION, k=2)
    for example, pick in zip(picks.as_dspy(), picks, strict=True):
        assert (example["question"], example["answer"]) == (pick.question, pick.answer)
        steps = len(pick.record.steps)
        assert [example["trajectory"][f"tool_name_{number}"] for number in range(steps + 1)] == [
            *pick.actions,
            "finish",
        ]


def test_langchain_selects_the_examples_of_a_prompt(village):
    selector = ExampleSelector(village.library, k=2, key="task", mode="relevance")
    pair = ChatPromptTemplate.from_messages([("human", "{question}"), ("ai", "{answer}")])
    shots = FewShotChatMessagePromptTemplate(example_selector=selector, example_prompt=pair, input_variables=["task"])
    messages = ChatPromptTemplate.from_messages([shots, ("human", "{task}")]).format_messages(task=QUESTION)
    picks = village.library.select(QUESTION, 2, "relevance")
    expected = [text for pick in picks for text in (pick.question, pick.answer)]
    assert [message.content for message in messages] == [*expected, QUESTION]
    doubling = ExampleSelector(village.library, k=2, key="task", mode="relevance", escape_braces=True)
    template = FewShotPromptTemplate(
        example_selector=doubling,
        example_prompt=PromptTemplate.from_template("{trace}"),
        example_separator="\n",
        suffix="Question: {task}\nThought:",
        input_variables=["task"],
    )
    assert template.format(task=QUESTION) == picks.as_text().partition("\n\n")[2]
    with pytest.raises(ShowhowError, match="no variable 'task'"):
        selector.select_examples({"question": QUESTION})
    with pytest.raises(ShowhowError, match="frozen"):
        selector.add_example({"question": "Q", "answer": "A"})


def test_what_a_file_does_not_say_is_remarked_or_refused(tmp_path: Path):
    file = tmp_path / "traces.txt"
    file.write_text("Words before.\nQuestion: Q?\nThought: I know.\nFinal Answer: A\n")
    library = Library.load(file)
    assert (library.questions, library.remarks) == (
        ["Q?"],
        ["question 1: the text before the first question was left out"],
    )
    file.write_text("Nothing of the kind.")
    with pytest.raises(ShowhowError, match=r"the format of .* is not recognized"):
        Library.load(file)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda _village: Library.load("nothing.jsonl"), "there is no file nothing.jsonl"),
        (lambda village: Library.load("nothing", home=village.home), "there is no library 'nothing'"),
        (lambda village: village.library.select(QUESTION, mode="best"), "there is no mode 'best'"),
        (lambda village: village.library.select(QUESTION, beta=1), "there is no setting 'beta'"),
        (lambda village: village.library.select(QUESTION, k=-1), "k is -1"),
        (lambda village: village.traces.store("a/b"), "a library cannot be called 'a/b'"),
    ],
)
def test_what_is_not_possible_is_said_in_one_sentence(act, sentence: str, village):
    with pytest.raises(ShowhowError) as error:
        act(village)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)
