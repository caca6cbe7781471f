"""Skills: replies that are not usable are asked again, then the fallback applies or the call has failed."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from showhow.llm.structured_output import ReplyParseError, parse_reply
from showhow.reasoners.pdrr.skills import PruneTriplesReply
from showhow.reasoners.skills.skill import (
    Fallback,
    Skill,
    SkillAttempt,
    SkillCall,
    SkillReply,
    answer_skill_call,
    build_skill_messages,
    read_skill_step,
    skill_step_data,
)
from showhow.reasoners.skills.values import AnswersReply, AnswerValue


class Sum(BaseModel):
    """Two numbers."""

    first: int
    second: int


class Total(BaseModel):
    """Their sum."""

    total: int


def check_total(request: Sum, reply: Total) -> str | None:
    return None if reply.total == request.first + request.second else f"{reply.total} is not the sum."


ADD: Skill[Sum, Total] = Skill("add", 1, "I add.", "showhow.reasoners.skills", Sum, Total, check_total)
ADD_OR_ZERO: Skill[Sum, Total] = Skill(
    "add", 1, "I add.", "showhow.reasoners.skills", Sum, Total, check_total, Fallback("zero", lambda _: Total(total=0))
)


class Script:
    """Replies with one text after the other, and keeps what it was told about the earlier ones."""

    name = "script"

    def __init__(self, *replies: str | SkillReply) -> None:
        self.replies = list(replies)
        self.rejections: list[list[str | None]] = []

    def reply(self, _call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        self.rejections.append([attempt.error for attempt in rejections])
        reply = self.replies.pop(0)
        return reply if isinstance(reply, SkillReply) else SkillReply(reply)


def call(skill: Skill[Sum, Total] = ADD) -> SkillCall[Sum, Total]:
    return SkillCall(skill, Sum(first=2, second=3), "here")


def test_a_bad_reply_is_asked_again_with_the_sentence_of_its_error():
    script = Script("Five!", '{"total": 6}', 'It is {"total": 5}.')
    result = answer_skill_call(script, call())
    assert result.reply == Total(total=5)
    assert [len(rejected) for rejected in script.rejections] == [0, 1, 2]
    assert script.rejections[2] == [
        "script did not reply in the requested form (it contains no JSON object).",
        "6 is not the sum.",
    ]


@pytest.mark.parametrize(
    "bad", ['{"total": ', "", '{"total": "many"}', '{"sum": 5, "rest": 1}', "[5]", '{"total": 5', "总和是五"]
)
def test_after_the_last_attempt_the_call_has_failed_or_has_its_fallback(bad: str):
    failed = answer_skill_call(Script(bad, bad, bad), call())
    assert failed.reply is None
    assert failed.error
    assert len(failed.attempts) == 3
    replaced = answer_skill_call(Script(bad, bad, bad), call(ADD_OR_ZERO))
    assert (replaced.reply, replaced.fallback) == (Total(total=0), "zero")


def test_a_problem_known_before_parsing_counts_as_an_attempt():
    result = answer_skill_call(Script(SkillReply("", problem="It was cut off."), '{"total": 5}'), call())
    assert result.reply == Total(total=5)
    assert [attempt.error for attempt in result.attempts] == ["It was cut off.", None]


def test_a_stored_result_is_read_again():
    for script in (Script("?", '{"total": 5}'), Script("?", "?", "?")):
        result = answer_skill_call(script, call(ADD_OR_ZERO))
        data = skill_step_data(result)
        assert data["calls"] == len(result.attempts)
        again = read_skill_step(ADD_OR_ZERO, data)
        assert (again.reply, again.fallback) == (result.reply, result.fallback)


@pytest.mark.parametrize("length", range(1, 90))
def test_no_part_of_a_broken_reply_is_an_answer_of_nothing(length: int):
    """A part of the JSON, such as the first answer, must not be read as a reply without answers."""
    whole = AnswersReply(answers=[AnswerValue(text="Ada", entity="Q1"), AnswerValue(text="Bo")], support=["1.2"])
    skill: Skill[Sum, AnswersReply] = Skill("find", 1, "I find.", "showhow.reasoners.skills", Sum, AnswersReply)
    text = whole.model_dump_json()[:length]
    result = answer_skill_call(Script(text, text, text), SkillCall(skill, Sum(first=1, second=1), "here"))
    assert result.reply is None or result.reply == whole


def test_messages_begin_alike_and_end_with_what_was_wrong():
    from showhow.reasoners.atomr.skills import PLAN, PlanRequest  # noqa: PLC0415 - any skill with a prompt

    first = SkillCall(PLAN, PlanRequest(question="Who?", sources=["text"]), "plan")
    second = SkillCall(PLAN, PlanRequest(question="Where?", sources=["graph"]), "plan")
    one, other = build_skill_messages(first), build_skill_messages(second, [SkillAttempt("{", "It is broken.")])
    assert one[0] == other[0]
    assert one[0].ends_prefix
    assert '"question":"Who?"' in one[1].text
    assert [message.role for message in other] == ["system", "user", "assistant", "user"]
    assert other[3].text.startswith("It is broken.")


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"'])
def test_a_number_that_is_none_is_refused_where_the_reply_is_parsed(score: str):
    with pytest.raises(ReplyParseError, match="did not reply in the requested form"):
        parse_reply(f'{{"facts": [{{"number": 1, "score": {score}}}]}}', PruneTriplesReply, "model")
