"""A skill: one typed call of a model, with a name, a version, a request, a reply, a prompt and checks.

    call = SkillCall(PLAN, PlanRequest(question="Who ...?"), node="plan")
    result = answer_skill_call(ModelResponder(chat), call)

A Responder replies to calls: a language model, gold reasoning, a script or a person. A reply that is not usable is
asked again at most MAX_RETRIES times, with the sentence that says why; then the skill's fallback applies, or the call
has failed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from showhow.db.models import SPAN_SKILL, Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatEmptyReply, ChatInterrupted
from showhow.llm.prompts import PromptTemplates
from showhow.llm.structured_output import ReplyParseError, mean_field_logprobs, parse_reply, request_json_reply
from showhow.llm.types import FinishReason, Message
from showhow.llm.usage import Usage

MAX_RETRIES = 2
"""How often a skill is asked again after a reply that is not usable."""

DEFAULT_SHOTS = 3
"""Plans of other questions that a planning skill is shown."""

RequestT = TypeVar("RequestT", bound=BaseModel)
ReplyT = TypeVar("ReplyT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Fallback(Generic[RequestT, ReplyT]):
    """The reply that replaces one which is not usable; `name` is shown in the trace."""

    name: str
    build: Callable[[RequestT], ReplyT]


def _accept(_request: Any, _reply: Any) -> str | None:
    """The default check, which accepts every reply that has the form."""


@dataclass(frozen=True, slots=True)
class Skill(Generic[RequestT, ReplyT]):
    """The definition of a skill."""

    name: str
    version: int
    """Raised with every change of the prompt or of the form of the reply."""
    description: str
    """What it does, as the thought of its step: Decompose the question."""
    package: str
    """The package whose folder `prompts` has its instructions as NAME.jinja."""
    request_type: type[RequestT]
    reply_type: type[ReplyT]
    check: Callable[[RequestT, ReplyT], str | None] = _accept
    """Returns what is wrong with a reply as one sentence, beyond its form; None if it is usable."""
    fallback: Fallback[RequestT, ReplyT] | None = None
    temperature: float | None = None
    """The temperature at which a model is asked; None for that of its profile."""
    shape: Callable[[ReplyT], Sequence[str]] | None = None
    """The form of a plan as a sequence of words without its texts; plans of other questions are shots of this skill."""
    scored_field: str | None = None
    """The field of the reply whose mean log-probability is asked for; of a list, that of each item."""
    draft: Callable[[RequestT], ReplyT] | None = None
    """Builds the reply with which the form of a person begins; None for an empty form."""

    @property
    def reference(self) -> str:
        """Name and version as stored with its steps: plan/1."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class Shot(Generic[RequestT, ReplyT]):
    """A request with a good reply, shown to a model before it is asked."""

    request: RequestT
    reply: ReplyT
    trace_id: UUID | None = None
    """The trace that it is from; None if it comes with Showhow."""
    position: int | None = None
    """The position of its step in this trace."""


@dataclass(frozen=True, slots=True)
class SkillCall(Generic[RequestT, ReplyT]):
    """A call of a skill that a reasoner has decided; the run stores it as a step before it is answered."""

    skill: Skill[RequestT, ReplyT]
    request: RequestT
    node: str
    """The place of the call in the reasoner's tree, unique within a run: 3/select."""
    parent: UUID | None = None
    """The id of the parent step."""
    sample: int = 0
    """The number of the sample, where the same request is asked several times."""
    shots: Sequence[Shot[RequestT, ReplyT]] = ()


@dataclass(frozen=True, slots=True)
class SkillReply:
    """The reply of a responder to one attempt: text to be parsed, or a value of the skill's reply type."""

    text: str
    value: BaseModel | None = None
    usage: Usage | None = None
    problem: str | None = None
    """Why there is no usable text, such as a reply that was cut off."""
    logprobs: tuple[float | None, ...] | None = None
    """The mean log-probabilities of the skill's scored field; None if the responder gives none."""


@dataclass(frozen=True, slots=True)
class SkillAttempt:
    """One attempt: the reply, and why it was not usable; None if it was."""

    text: str
    error: str | None


@dataclass(frozen=True, slots=True)
class SkillResult(Generic[ReplyT]):
    """The result of a call: a reply, possibly that of the fallback, or none."""

    reply: ReplyT | None
    attempts: tuple[SkillAttempt, ...] = ()
    fallback: str | None = None
    """The name of the fallback that gave the reply."""
    usage: Usage | None = None
    step_id: UUID | None = None
    """The id of the step, set by the run."""
    step_position: int | None = None
    logprobs: tuple[float | None, ...] | None = None
    """The mean log-probability of the skill's scored field, of a list one for each item; None if there are none."""
    shots: Sequence[Shot[Any, Any]] = ()
    """The shots that were shown, set by the run."""

    @property
    def error(self) -> str | None:
        """Why the last attempt was not usable; None if it was."""
        return self.attempts[-1].error if self.attempts else None

    @property
    def is_usable(self) -> bool:
        """Whether the responder gave a reply of the skill's form, not the fallback."""
        return self.reply is not None and self.fallback is None


class RejectedReply(Exception):
    """A reply that a person wrote is not usable; the message says in one sentence what is wrong with it."""


class Responder(Protocol):
    """Replies to calls of skills; thread-safe."""

    @property
    def name(self) -> str:
        """The name that runs store: model, oracle, reader."""

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """Reply to the call; `rejections` are the earlier attempts. ChatError if there is no reply."""


def answer_skill_call(
    responder: Responder, call: SkillCall[RequestT, ReplyT], may_retry: Callable[[], bool] = lambda: True
) -> SkillResult[ReplyT]:
    """Ask the responder until a reply is usable; after the last attempt the skill's fallback applies, if it has one."""
    attempts: list[SkillAttempt] = []
    usage: Usage | None = None
    for number in range(1 + MAX_RETRIES):
        if number and not may_retry():
            break
        reply = responder.reply(call, attempts)
        if reply.usage is not None:
            usage = reply.usage if usage is None else usage + reply.usage
        value, error = _validate(call, reply, responder.name)
        attempts.append(SkillAttempt(reply.text, error))
        if value is not None and error is None:
            return SkillResult(value, tuple(attempts), usage=usage, logprobs=reply.logprobs)
    fallback = call.skill.fallback
    if fallback is None:
        return SkillResult(None, tuple(attempts), usage=usage)
    return SkillResult(fallback.build(call.request), tuple(attempts), fallback.name, usage)


def _validate(
    call: SkillCall[RequestT, ReplyT], reply: SkillReply, responder_name: str
) -> tuple[ReplyT | None, str | None]:
    """The reply as a value of the skill's type, and what is wrong with it."""
    if reply.problem is not None:
        return None, reply.problem
    if reply.value is None:
        try:
            value = parse_reply(reply.text, call.skill.reply_type, responder_name)
        except ReplyParseError as error:
            return None, str(error)
    elif isinstance(reply.value, call.skill.reply_type):
        value = reply.value
    else:
        raise TypeError(f"{responder_name} replied to {call.skill.name} with a {type(reply.value).__name__}")
    if not _is_finite(value.model_dump()):
        return None, "A number of the reply is infinite or not a number; write it with digits."
    return value, call.skill.check(call.request, value)


def _is_finite(value: Any) -> bool:
    """Whether all numbers in a JSON value can be stored."""
    if isinstance(value, Mapping | list):
        return all(map(_is_finite, value.values() if isinstance(value, Mapping) else value))
    return not isinstance(value, float) or isfinite(value)


def skill_step_data(result: SkillResult[Any]) -> dict[str, Any]:
    """What the step of a call stores: the reply, its log-probabilities, the fallback, and the unusable attempts."""
    rejected = [{"text": attempt.text, "error": attempt.error} for attempt in result.attempts if attempt.error]
    return {
        "reply": None if result.reply is None else result.reply.model_dump(mode="json", exclude_none=True),
        "calls": len(result.attempts),
        **({"fallback": result.fallback} if result.fallback else {}),
        **({"rejected": rejected} if rejected else {}),
        **({} if result.logprobs is None else {"logprobs": list(result.logprobs)}),
        **({"shots": [_name_shot(shot) for shot in result.shots]} if result.shots else {}),
    }


def _name_shot(shot: Shot[Any, Any]) -> dict[str, Any]:
    """Where a shot is from; nothing if it comes with Showhow."""
    return {} if shot.trace_id is None else {"trace": str(shot.trace_id), "position": shot.position}


def read_skill_step(skill: Skill[Any, ReplyT], data: dict[str, Any]) -> SkillResult[ReplyT]:
    """The result that a finished step stores; pydantic's ValidationError if an edit broke its form."""
    reply, logprobs = data.get("reply"), data.get("logprobs")
    return SkillResult(
        None if reply is None else skill.reply_type.model_validate(reply),
        tuple(SkillAttempt(attempt["text"], attempt["error"]) for attempt in data.get("rejected", ())),
        data.get("fallback"),
        logprobs=None if logprobs is None else tuple(logprobs),
    )


def read_shot(skill: Skill[RequestT, ReplyT], step: Step) -> Shot[RequestT, ReplyT] | None:
    """The call and reply of a finished step as a shot; None if the skill does not accept them any more."""
    try:
        request = skill.request_type.model_validate(step.arguments)
        reply = skill.reply_type.model_validate((step.data or {}).get("reply"))
    except ValidationError:
        # The step is of an older version, or its call failed.
        return None
    return None if skill.check(request, reply) else Shot(request, reply, step.trace_id, step.position)


def list_shots(
    skill: Skill[RequestT, ReplyT], demonstrations: Sequence[TraceRecord]
) -> tuple[Shot[RequestT, ReplyT], ...]:
    """The first call of the skill in each demonstration that has one."""
    steps = (next((step for step in record.steps if skill_name(step) == skill.name), None) for record in demonstrations)
    shots = (read_shot(skill, step) for step in steps if step is not None)
    return tuple(shot for shot in shots if shot is not None)


def check_written_reply(skill: Skill[Any, ReplyT], arguments: dict[str, Any], document: dict[str, Any]) -> ReplyT:
    """The reply that a person wrote to the request of a recorded step; RejectedReply if it is not usable."""
    try:
        reply = skill.reply_type.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = " › ".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        raise RejectedReply(f"{place or 'The reply'}: {first['msg'].lower()}.") from error
    problem = skill.check(skill.request_type.model_validate(arguments), reply)
    if problem is not None:
        raise RejectedReply(problem)
    return reply


def written_step_data(reply: BaseModel, author: str) -> dict[str, Any]:
    """What the step of a call stores whose reply a person wrote: no call of a model, and the name of its author."""
    return {"reply": reply.model_dump(mode="json", exclude_none=True), "calls": 0, "written_by": author}


def read_reply(step: Step) -> Mapping[str, Any] | None:
    """The reply that the step of a call stores, as JSON; None before there is one, or if there was none."""
    reply = (step.data or {}).get("reply")
    return reply if isinstance(reply, dict) else None


def skill_name(step: Step) -> str:
    """The name of the skill that a step calls, whatever its version; "" for other steps."""
    return (step.skill or "").partition("/")[0]


class SkillSteps:
    """The steps of a run with skills, by place, parent and skill."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.spans = {step.node or "": step for step in steps if step.skill == SPAN_SKILL}
        self.calls: dict[str, list[Step]] = {}
        """The calls of each skill, by its name, whatever its version."""
        self._children: dict[UUID, list[Step]] = {}
        for step in steps:
            if step.parent_id is not None:
                self._children.setdefault(step.parent_id, []).append(step)
            if step.skill not in (None, SPAN_SKILL) and step.tool is None:
                self.calls.setdefault(skill_name(step), []).append(step)

    def reply(self, skill: str) -> tuple[Step, Mapping[str, Any]] | None:
        """The first call of a skill that has a reply, and the reply."""
        replies = ((step, read_reply(step)) for step in self.calls.get(skill, ()))
        return next(((step, reply) for step, reply in replies if reply is not None), None)

    def latest_span(self, place: str) -> Step | None:
        """The span at a place, or the one in which its work was done again."""
        return self.spans.get(f"{place}/again") or self.spans.get(place)

    def below(self, span: Step | None) -> Sequence[Step]:
        """The children of a span."""
        return () if span is None else self._children.get(span.id, ())

    def deciding_call(self, span: Step | None) -> Step | None:
        """The last call of a skill within a span, which decided its result."""
        calls = [step for step in self.below(span) if step.tool is None and step.skill not in (None, SPAN_SKILL)]
        return calls[-1] if calls else None

    @staticmethod
    def result(span: Step | None) -> Mapping[str, Any]:
        """The data of a finished span; empty before it is finished."""
        return (span.data or {}) if span is not None and span.finished_at is not None else {}


_CUT_OFF = "The reply was cut off before its end; write a shorter one."


@cache
def _get_templates(package: str) -> PromptTemplates:
    return PromptTemplates(package)


def build_skill_messages(call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt] = ()) -> list[Message]:
    """The messages of a request: instructions first, which all calls of the skill share, then the request as JSON.

    Shots stand between them, as requests that were answered.
    Each rejected attempt follows with the sentence that says what is wrong with it.
    """
    skill = call.skill
    instructions = _get_templates(skill.package)(skill.name, request=call.request)
    messages = [
        Message("system", instructions, ends_prefix=True),
        *(
            message
            for shot in call.shots
            for message in (
                Message("user", shot.request.model_dump_json(exclude_none=True)),
                Message("assistant", shot.reply.model_dump_json(exclude_none=True)),
            )
        ),
        Message("user", call.request.model_dump_json(exclude_none=True)),
    ]
    for rejection in rejections:
        messages += [
            Message("assistant", rejection.text or "(an empty reply)"),
            Message("user", f"{rejection.error} Reply again, only with JSON of the form that was described."),
        ]
    return messages


@dataclass(frozen=True, slots=True)
class ModelResponder:
    """Replies with a language model; ChatError if its server gives no reply."""

    chat: ChatClient
    name: str = field(default="model", init=False)

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """Ask the model once; a reply that is empty, interrupted or cut off has a problem and is asked again."""
        chat = self.chat.with_purpose(f"skill:{call.skill.name}")
        messages = build_skill_messages(call, rejections)
        field = call.skill.scored_field
        try:
            reply = request_json_reply(
                chat, messages, call.skill.reply_type, call.skill.temperature, logprobs=field is not None
            )
        except (ChatEmptyReply, ChatInterrupted) as error:
            return SkillReply("", usage=error.usage, problem=str(error))
        problem = _CUT_OFF if reply.stopped == FinishReason.LENGTH else None
        logprobs = None if field is None else mean_field_logprobs(reply, field)
        return SkillReply(reply.text, usage=reply.usage, problem=problem, logprobs=logprobs)
