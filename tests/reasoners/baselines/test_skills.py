"""The skills of the baselines: the forms of their replies, and the prompts of those that no golden run shows."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from showhow.llm.structured_output import to_strict_schema
from showhow.reasoners.baselines.chain_of_knowledge import (
    CORRECT_RATIONALE,
    DRAFT_RATIONALES,
    NEXT_RATIONALE,
    CorrectRationaleRequest,
    NextRationaleRequest,
)
from showhow.reasoners.baselines.graph_skills import ANSWER_WALK, ENOUGH, REASON_WALK, REFLECT
from showhow.reasoners.baselines.probtree import QUESTION_TREE
from showhow.reasoners.baselines.skills import COT_ANSWER, COT_RAG, IN_CONTEXT, REASON_SENTENCE, SELF_ASK
from showhow.reasoners.skills.skill import Skill, SkillCall, build_skill_messages
from showhow.reasoners.skills.values import SourcePassage
from showhow.reasoners.sources import BareQuestion
from tests.reasoners.baselines.scripted_runs import QUESTION

PASSAGE = SourcePassage(id="4.1", source="text", title="Sea Star", text="Its captain is Ada Lund.")


@pytest.mark.parametrize("skill", [COT_ANSWER, COT_RAG, IN_CONTEXT], ids=lambda skill: skill.name)
def test_the_schema_has_the_reasons_before_the_answers(skill: Skill[BaseModel, BaseModel]) -> None:
    quotes = [] if skill is COT_ANSWER else ["quotes"]
    names = list(to_strict_schema(skill.reply_type)["properties"])
    assert names == ["reasons", "answers", "support", "unknown", *quotes]


def test_the_schema_has_the_intermediate_answer_before_the_next_follow_up() -> None:
    assert list(to_strict_schema(SELF_ASK.reply_type)["properties"]) == ["intermediate", "follow_up", "final"]
    assert list(to_strict_schema(REASON_SENTENCE.reply_type)["properties"]) == ["sentence", "final"]


@pytest.mark.parametrize("skill", [ENOUGH, ANSWER_WALK, REFLECT, REASON_WALK], ids=lambda skill: skill.name)
def test_the_schema_of_a_decision_about_a_walk_begins_with_its_reasons(skill: Skill[BaseModel, BaseModel]) -> None:
    assert next(iter(to_strict_schema(skill.reply_type)["properties"])) == "reasons"


@pytest.mark.parametrize(
    ("skill", "request_"),
    [
        (QUESTION_TREE, BareQuestion(question=QUESTION)),
        (DRAFT_RATIONALES, BareQuestion(question=QUESTION)),
        (
            NEXT_RATIONALE,
            NextRationaleRequest(question=QUESTION, corrected=["Ada Lund is it."], draft=["She was born."]),
        ),
        (
            CORRECT_RATIONALE,
            CorrectRationaleRequest(question=QUESTION, corrected=[], rationale="Bo Reed is it.", passages=[PASSAGE]),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Skill) else "",
)
def test_a_prompt_is_as_its_golden_file(
    matches_golden: Callable[[str, str], None], skill: Skill[Any, Any], request_: BaseModel
) -> None:
    messages = build_skill_messages(SkillCall(skill, request_, "here"))
    matches_golden(skill.name, "\n".join(f"----- {message.role}\n{message.text}" for message in messages))


def test_the_schema_has_the_rationales_before_the_answers() -> None:
    names = list(to_strict_schema(DRAFT_RATIONALES.reply_type)["properties"])
    assert names == ["rationales", "answers", "support", "unknown"]
