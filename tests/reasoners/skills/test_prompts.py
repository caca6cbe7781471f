"""The prompt of each skill of AtomR, PDRR and GEEK as it is sent, against golden files."""

import re
from pathlib import Path
from typing import Any

import pytest

from showhow.llm.structured_output import parse_reply
from showhow.reasoners.atomr.skills import (
    AGGREGATE,
    OPERATE,
    PLAN,
    AggregateRequest,
    AnsweredQuestion,
    OperateRequest,
    PlanRequest,
)
from showhow.reasoners.geek.skills import (
    CONCLUDE,
    DECOMPOSE,
    EXTRACT,
    NEEDS_RETRIEVAL,
    NEXT_ACTION,
    SELF_ANSWER,
    DecomposeRequest,
    ExcavatedFact,
    ExtractRequest,
    StateRequest,
    SubquestionRequest,
)
from showhow.reasoners.pdrr.skills import (
    ANSWER_TRIPLES,
    BEST_CHAIN,
    COMPLETE,
    PRUNE_TRIPLES,
    RELATIONS,
    STRUCTURE,
    TRIPLES,
    AnswerTriplesRequest,
    BestChainRequest,
    CandidateFact,
    ChosenRelation,
    CompletedTriple,
    CompleteRequest,
    NumberedChain,
    OfferedFact,
    PdrrQuestion,
    PruneTriplesRequest,
    RelationsRequest,
    TriplesRequest,
)
from showhow.reasoners.pdrr.triples import Triple
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import Skill, SkillCall, build_skill_messages
from showhow.reasoners.skills.values import AnswerValue, OfferedRelation, OperandValue, SourcePassage
from showhow.reasoners.sources import (
    DIRECT_ANSWER,
    DIRECT_RAG,
    SELECT_SOURCES,
    BareQuestion,
    PassageQuestion,
    SelectSourcesRequest,
    SourceChoice,
)

GOLDEN = Path(__file__).parent / "golden"
QUESTION = "Who is the mother of the baker of Gullhaven?"
BAKER = AnswerValue(text="Bo Reed", entity="Q7")
ADA = AnswerValue(text="Ada Reed", entity="Q8")
PASSAGE = SourcePassage(id="4.1", source="text", title="Bo Reed", text="His mother is Ada Reed.")
TRIPLE = Triple(subject="person#1", relation="mother", object="person#2")
FACT = ExcavatedFact(number=1, question="Who is the baker?", fact="The baker is Bo Reed.", answers=[BAKER])
ASKED = {"question": "Who is the mother of Bo Reed?", "planned": "Who is the mother of #1?", "references": {1: [BAKER]}}
REQUESTS: list[tuple[Skill[Any, Any], Any]] = [
    (PLAN, PlanRequest(question=QUESTION, sources=["text", "graph"])),
    (OPERATE, OperateRequest(
        op="Relate", question="Who is the mother of Bo Reed?",
        args=[OperandValue(values=[BAKER]), OperandValue(text="mother")], passages=[PASSAGE],
    )),
    (AGGREGATE, AggregateRequest(
        question=QUESTION, answered=[AnsweredQuestion(question="Who is the baker?", answers=[BAKER])]
    )),
    (SELECT_SOURCES, SelectSourcesRequest(
        question=QUESTION, op="Search", sources=[SourceChoice(name="text", description="articles")]
    )),
    (DIRECT_RAG, PassageQuestion(question=QUESTION, passages=[PASSAGE])),
    (DIRECT_ANSWER, BareQuestion(question=QUESTION)),
    (STRUCTURE, PdrrQuestion(question=QUESTION)),
    (TRIPLES, TriplesRequest(question=QUESTION, structure="chain")),
    (RELATIONS, RelationsRequest(
        triple=TRIPLE, known=[BAKER], known_is="subject", keep=4,
        relations=[OfferedRelation(id="P25", label="mother", direction="head")],
    )),
    (PRUNE_TRIPLES, PruneTriplesRequest(
        question=QUESTION, triple=TRIPLE, known=BAKER, known_is="subject", keep=2,
        facts=[OfferedFact(number=1, relation="mother", other=ADA)],
    )),
    (BEST_CHAIN, BestChainRequest(
        question=QUESTION, triples=[TRIPLE], answer="person#2",
        chains=[NumberedChain(number=1, facts=[
            CandidateFact(known=BAKER, relation="mother", other=ADA, support=("4.1",))
        ])],
    )),
    (COMPLETE, CompleteRequest(triple=TRIPLE, known=[BAKER], from_subject=True, passages=[PASSAGE])),
    (ANSWER_TRIPLES, AnswerTriplesRequest(
        question=QUESTION, answer="person#2", values={"person#1": [BAKER]}, passages=[PASSAGE],
        triples=[CompletedTriple(
            triple=TRIPLE, relations=[ChosenRelation(id="P25", direction="head")], facts=["4.1"]
        )],
    )),
    (NEXT_ACTION, StateRequest(question=QUESTION, state=[FACT])),
    (DECOMPOSE, DecomposeRequest(question=QUESTION, state=[FACT], others=["When was #1 born?"])),
    (NEEDS_RETRIEVAL, SubquestionRequest(**ASKED, state=[FACT])),
    (EXTRACT, ExtractRequest(**ASKED, state=[FACT], pseudo="Cora", passages=[PASSAGE])),
    (SELF_ANSWER, SubquestionRequest(**ASKED, state=[FACT])),
    (CONCLUDE, StateRequest(question=QUESTION, state=[FACT])),
]  # fmt: skip


@pytest.mark.parametrize(("skill", "request_"), REQUESTS, ids=[skill.name for skill, _ in REQUESTS])
def test_a_prompt_is_as_its_golden_file(skill: Skill[Any, Any], request_: Any):
    messages = build_skill_messages(SkillCall(skill, request_, "here"))
    prompt = "\n".join(f"--- {message.role}\n{message.text}" for message in messages) + "\n"
    assert prompt == (GOLDEN / f"{skill.name}.txt").read_text(encoding="utf-8")


def read_examples(skill: Skill[Any, Any]) -> list[tuple[Any, Any]]:
    """The worked examples in the instructions of a skill, as requests and replies."""
    instructions = build_skill_messages(SkillCall(skill, skill.request_type.model_construct(), "here"))[0].text
    examples = re.findall(r"^Request: (.+)\nReply: (.+)$", instructions, re.MULTILINE)
    return [
        (skill.request_type.model_validate_json(asked), skill.reply_type.model_validate_json(replied))
        for asked, replied in examples
    ]


@pytest.mark.parametrize("skill", [skill for skill, _ in REQUESTS if skill.package.endswith((".pdrr", ".geek"))])
def test_instructions_have_a_worked_example_that_the_skill_accepts(skill: Skill[Any, Any]):
    examples = read_examples(skill)
    assert examples
    for asked, replied in examples:
        assert skill.check(asked, replied) is None
        assert replied.model_dump_json(exclude_none=True) not in {"{}", '{"branches":[]}'}


ATOMR_REQUESTS: list[tuple[Skill[Any, Any], dict[str, Any]]] = [
    (PLAN, {"question": "", "sources": []}),
    *(
        (OPERATE, {"op": op, "question": "", "args": [], "passages": [], "separate": separate, "own": own})
        for op in ("Search", "Relate", "Filter")
        for separate in (None, True)
        for own in (None, True)
    ),
    *((AGGREGATE, {"question": "", "own": own}) for own in (None, True)),
    *((SELECT_SOURCES, {"question": "", "unsure": unsure}) for unsure in (None, "all")),
    *((DIRECT_RAG, {"question": "", "passages": [], "own": own}) for own in (None, True)),
    (DIRECT_ANSWER, {"question": ""}),
]
"""The requests whose instructions differ."""


@pytest.mark.parametrize(("skill", "fields"), ATOMR_REQUESTS)
def test_each_prompt_of_atomr_has_worked_examples_that_its_own_checks_accept(
    skill: Skill[Any, Any], fields: dict[str, Any]
):
    request = skill.request_type.model_validate(fields)
    instructions = build_skill_messages(SkillCall(skill, request, "here"))[0].text
    lines = [line.partition(": ") for line in instructions.splitlines()]
    asked = [text for name, _, text in lines if name == "Request"]
    replies = [text for name, _, text in lines if name == "Reply"]
    assert len(asked) == len(replies) == (3 if fields.get("op") and not fields["separate"] else 1)
    for text, reply in zip(asked, replies, strict=True):
        example = skill.request_type.model_validate_json(text)
        assert skill.check(example, parse_reply(reply, skill.reply_type, "the example")) is None
        if fields.get("separate"):
            assert example.op == fields["op"]
    if fields.get("own") or fields.get("unsure"):
        other = skill.request_type.model_validate({**fields, "own": None, "unsure": None})
        assert instructions != build_skill_messages(SkillCall(skill, other, "here"))[0].text
        assert "Do not use what you know" not in instructions


def test_every_skill_of_these_methods_has_a_golden_file():
    names = {skill.name for method in ("atomr", "pdrr", "geek") for skill in REASONERS[method].skills}
    assert names == {skill.name for skill, _ in REQUESTS} == {file.stem for file in GOLDEN.glob("*.txt")}
