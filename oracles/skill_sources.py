"""What replies to skills in an evaluation in place of the model: gold reasoning, a script, or stored runs.

    responder = ReaderResponder(GoldReasoning(world, question.text, question.details))

A reader knows a fact only if a passage or row that it sees states it. Where they do not state all facts that are asked
for, its reply is unknown. So a reasoner with a reader answers rightly or refuses: it tests the retrieval.

    responder = FaultyResponder(OracleResponder(gold), Fault("malformed", rate=0.1, seed=7), gold)

Each attempt draws from a stream of its own, which question, place, skill, sample, attempt and seed determine, so that
neither the order of the calls nor the number of threads changes what is spoilt.

A script and stored runs reply too; of questions and worlds they know nothing.

    open_responder = parse_skill_source("script:replies.jsonl").open(services, world)
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from showhow.db.database import StoreError
from showhow.db.models import Question, Step
from showhow.db.run_spec import MODEL_SKILLS
from showhow.db.traces.traces import load_trace
from showhow.guard.plugins import Registry
from showhow.llm.errors import ChatError
from showhow.oracles.gold_traces.traces import open_gold_world
from showhow.oracles.reader import ReaderResponder, say_unknown
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import PlanArgument, PlanReply
from showhow.reasoners.base import ReasonerError
from showhow.reasoners.baselines.graph_skills import FactScores, RelationScores
from showhow.reasoners.geek.skills import FactReply
from showhow.reasoners.pdrr.skills import PruneTriplesReply, RelationsReply, TriplesReply
from showhow.reasoners.skills.skill import Responder, SkillAttempt, SkillCall, SkillReply, read_reply
from showhow.reasoners.skills.values import AnswersReply, AnswerValue
from showhow.reasoners.sources import SelectSourcesReply
from showhow.runs.services import Services
from showhow.worlds.folder import WorldError

FAULTY = "faulty"
FAULT_KINDS = {
    "malformed": "the text breaks off in the middle of the JSON",
    "cut": "the reply ends at a limit of tokens",
    "timeout": "there is no reply in time",
    "wrong": "the reply is valid and wrong: a neighbour's answer, another relation, another source",
    "unknown": "an answering skill says that it does not know",
}
_OTHER_RELATIONS = {"mother": "father", "father": "mother", "son": "daughter", "daughter": "son"}
_OTHER_RELATION = "friend"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is spoilt, and how often."""

    kind: str
    rate: float
    """The probability for each attempt, from 0 to 1."""
    seed: int


@dataclass(frozen=True, slots=True)
class FaultyResponder:
    """Replies like another responder, but spoils replies at a rate."""

    inner: Responder
    fault: Fault
    gold: GoldReasoning
    name: str = field(default=FAULTY, init=False)

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """The reply of the other responder, or a spoilt one."""
        fault = self.fault
        place = (fault.seed, self.gold.text, call.node, call.skill.name, call.sample, len(rejections))
        generator = Random(repr(place))  # noqa: S311 - repeatable, no secret
        reply = self.inner.reply(call, rejections)
        if generator.random() >= fault.rate:
            return reply
        if fault.kind == "malformed":
            return SkillReply(reply.text[: len(reply.text) // 2])
        if fault.kind in ("cut", "timeout"):
            return SkillReply("", problem=f"There is no whole reply: {FAULT_KINDS[fault.kind]}.")
        if reply.value is None:
            return reply
        if fault.kind == "wrong":
            value = self._make_wrong(reply.value, generator)
        else:
            value = say_unknown(reply.value) if isinstance(reply.value, AnswersReply) else reply.value
        return SkillReply(value.model_dump_json(exclude_none=True), value)

    def _make_wrong(self, value: BaseModel, generator: Random) -> BaseModel:
        for reply_type, spoil in _WRONG_REPLIES:
            if isinstance(value, reply_type):
                return spoil(self, value, generator)
        return value

    def _wrong_answers(self, value: AnswersReply, _generator: Random) -> AnswersReply:
        answers = [self._neighbour(answer) for answer in value.answers] or [self.gold.to_value("person", 0)]
        changed = {"answers": answers, "unknown": False}
        return value.model_copy(update=changed | ({"fact": "Something else."} if isinstance(value, FactReply) else {}))

    def _neighbour(self, answer: AnswerValue) -> AnswerValue:
        """Another thing of the same kind; for yes no, and for a number or a day one more."""
        items = self.gold.things.items
        if answer.entity is not None:
            kind, number = items.locate(answer.entity)
            return self.gold.to_value(kind, (number + 1) % len(items.labels(kind)), answer.of)
        if answer.text in ("yes", "no"):
            return answer.model_copy(update={"text": "no" if answer.text == "yes" else "yes"})
        if answer.text.isdecimal():
            return answer.model_copy(update={"text": str(int(answer.text) + 1)})
        return answer.model_copy(
            update={"text": f"1{answer.text[1:]}" if answer.text[:1] != "1" else f"2{answer.text[1:]}"}
        )

    def _wrong_plan(self, value: PlanReply, generator: Random) -> PlanReply:
        related = [node for node in value.nodes if node.op == "Relate"]
        if not related:
            return value
        chosen = generator.choice(related)
        words = _OTHER_RELATIONS.get(chosen.args[1].text or "", _OTHER_RELATION)
        changed = chosen.model_copy(update={"args": [chosen.args[0], PlanArgument(text=words)]})
        return PlanReply(nodes=[changed if node.id == chosen.id else node for node in value.nodes])

    def _wrong_triples(self, value: TriplesReply, generator: Random) -> TriplesReply:
        number = generator.randrange(len(value.triples))
        triple = value.triples[number]
        changed = triple.model_copy(update={"relation": _OTHER_RELATIONS.get(triple.relation, _OTHER_RELATION)})
        triples = [*value.triples[:number], changed, *value.triples[number + 1 :]]
        return TriplesReply(triples=triples, answer=value.answer)

    def _wrong_relations(self, value: RelationsReply, _generator: Random) -> RelationsReply:
        return value.model_copy(update={"relations": value.relations[1:]})

    def _wrong_pruning(self, value: PruneTriplesReply, _generator: Random) -> PruneTriplesReply:
        return value.model_copy(update={"facts": value.facts[1:]})

    def _wrong_sources(self, value: SelectSourcesReply, generator: Random) -> SelectSourcesReply:
        return SelectSourcesReply(sources=[generator.choice(value.sources)])

    def _wrong_relation_scores(self, value: RelationScores, _generator: Random) -> RelationScores:
        return RelationScores(
            relations=[scored.model_copy(update={"score": 1 - scored.score}) for scored in value.relations]
        )

    def _wrong_fact_scores(self, value: FactScores, _generator: Random) -> FactScores:
        return FactScores(facts=[scored.model_copy(update={"score": 1 - scored.score}) for scored in value.facts])


_WRONG_REPLIES: tuple[tuple[type[BaseModel], Callable[[FaultyResponder, Any, Random], BaseModel]], ...] = (
    (AnswersReply, FaultyResponder._wrong_answers),
    (PlanReply, FaultyResponder._wrong_plan),
    (TriplesReply, FaultyResponder._wrong_triples),
    (RelationsReply, FaultyResponder._wrong_relations),
    (PruneTriplesReply, FaultyResponder._wrong_pruning),
    (SelectSourcesReply, FaultyResponder._wrong_sources),
    (RelationScores, FaultyResponder._wrong_relation_scores),
    (FactScores, FaultyResponder._wrong_fact_scores),
)


class UnknownSkillSource(ValueError):
    """Nothing of this name replies to skills, or it cannot be read; the message says what does."""


class MissingReply(ReasonerError):
    """A script or a stored run has no reply to a call; the message names the skill and its place."""


class SkillSource(Protocol):
    """What replies to skills in place of the model."""

    def open(self, services: Services, world: str, /) -> Callable[[Question], Responder]:
        """Make the function that gives the responder of each question; UnknownSkillSource if it cannot be read."""


@dataclass(frozen=True, slots=True)
class GoldSkillSource:
    """The gold reasoning of a generated world."""

    fault: Fault | None = None
    reads: bool = False
    """Whether replies rest on what was retrieved."""

    def open(self, services: Services, world: str, /) -> Callable[[Question], Responder]:
        """A gold responder for each question; WorldError for a world that was not generated."""
        gold_world = open_gold_world(services, world)
        return lambda question: self.make_responder(GoldReasoning(gold_world, question.text, question.details))

    def make_responder(self, gold: GoldReasoning) -> Responder:
        """The responder for one question."""
        if self.reads:
            return ReaderResponder(gold)
        oracle = OracleResponder(gold)
        return oracle if self.fault is None else FaultyResponder(oracle, self.fault, gold)


class ScriptedReply(BaseModel):
    """One line of a script: a reply to a skill, as JSON or as text."""

    model_config = ConfigDict(extra="forbid")

    skill: str
    reply: Any
    node: str | None = None
    """The place of the call; None for a call at any place that has no line of its own."""
    question: str | None = None
    """The question to whose run it belongs; None for the run of every question."""


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """Replies that a file of JSON lines has."""

    file: Path

    def open(self, _services: Services, _world: str, /) -> Callable[[Question], Responder]:
        """Read the file; each question begins the script anew."""
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UnknownSkillSource(f"the script {self.file} cannot be read: {error}") from error
        replies = [self._parse(number, line) for number, line in enumerate(lines, 1) if line.strip()]

        def make_responder(question: Question) -> Responder:
            own = [reply for reply in replies if reply.question in (None, question.text)]
            return ScriptResponder(own, self.file.name)

        return make_responder

    def _parse(self, number: int, line: str) -> ScriptedReply:
        try:
            return ScriptedReply.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            raise UnknownSkillSource(
                f"line {number} of the script {self.file} is not usable, {place}: {first['msg'].lower()}; write "
                '{"skill": ..., "reply": ...}, perhaps with "node" and "question"'
            ) from error


class ScriptResponder:
    """Replies with the lines of a script, each once, in order; lines of the call's node come first.

    Branches that work at the same time ask in no fixed order, so their lines need nodes.
    """

    name = "script"

    def __init__(self, replies: Sequence[ScriptedReply], script: str) -> None:
        self._left = list(replies)
        self._script = script
        self._lock = Lock()

    def reply(self, call: SkillCall[Any, Any], _rejections: Sequence[SkillAttempt]) -> SkillReply:
        """The next reply of the skill as text, which is parsed and checked like a model's; MissingReply without one."""
        with self._lock:
            lines = [line for line in self._left if line.skill == call.skill.name and line.node in (None, call.node)]
            if not lines:
                place = f"the skill {call.skill.name} at {call.node}"
                raise MissingReply(f"The script {self._script} has no reply for {place}; add a line.")
            line = min(lines, key=lambda line: line.node is None)
            self._left = [other for other in self._left if other is not line]
        return SkillReply(line.reply if isinstance(line.reply, str) else json.dumps(line.reply))


@dataclass(frozen=True, slots=True)
class StoredSource:
    """The replies that the steps of stored traces have."""

    traces: tuple[UUID, ...]

    def open(self, services: Services, _world: str, /) -> Callable[[Question], Responder]:
        """Load the traces; RowNotFound for one that does not exist."""
        with services.library_database.read() as session:
            records = [load_trace(session, trace_id) for trace_id in self.traces]
        return lambda question: StoredResponder(
            [step for record in records if record.question.full_text == question.full_text for step in record.steps]
        )


class StoredResponder:
    """Replies to a request as stored runs did, with the rejected attempts; each call once, that of the node first."""

    name = "stored"

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left: dict[str, list[Step]] = {}
        for step in steps:
            if step.skill and step.tool is None and (read_reply(step) is not None or (step.data or {}).get("rejected")):
                self._left.setdefault(_request_key(step.skill, step.arguments), []).append(step)
        self._taken: dict[tuple[str, str, int], Step] = {}
        """The step of each call by node, skill and sample, for further attempts."""
        self._lock = Lock()

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """The stored attempt of the same number; MissingReply if the request was not stored."""
        place = (call.node, call.skill.reference, call.sample)
        with self._lock:
            if not rejections:
                self._taken[place] = self._take(call)
            data = self._taken[place].data or {}
        rejected = data.get("rejected", ())
        if len(rejections) < len(rejected):
            attempt = rejected[len(rejections)]
            return SkillReply(attempt["text"], problem=attempt["error"])
        logprobs = data.get("logprobs")
        return SkillReply(json.dumps(data.get("reply")), logprobs=None if logprobs is None else tuple(logprobs))

    def _take(self, call: SkillCall[Any, Any]) -> Step:
        request = call.request.model_dump(mode="json", exclude_none=True)
        steps = self._left.get(_request_key(call.skill.reference, request), [])
        if not steps:
            raise MissingReply(
                f"The stored run has no reply to this request of the skill {call.skill.name} at {call.node}; "
                "name a run with the same world, question and options."
            )
        step = min(steps, key=lambda step: step.node != call.node)
        steps.remove(step)
        return step


def _request_key(skill: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([skill, arguments], sort_keys=True)


def _parse_faulty(text: str) -> GoldSkillSource | None:
    match = re.fullmatch(r"([\d.]+):(\d+)(?::(\w+))?", text)
    kind = (match and match[3]) or "malformed"
    try:
        rate = float(match[1]) if match else -1.0
    except ValueError:
        rate = -1.0
    return (
        GoldSkillSource(Fault(kind, rate, int(match[2]))) if match and 0 <= rate <= 1 and kind in FAULT_KINDS else None
    )


def _parse_stored(text: str) -> StoredSource | None:
    try:
        return StoredSource(tuple(UUID(trace.strip()) for trace in text.split(",")))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SkillSourceKind:
    """One kind of what replies to skills, written NAME, or NAME:VALUE."""

    name: str
    description: str
    """What replies, as a phrase for help texts and pages."""
    parse: Callable[[str], SkillSource | None]
    """Reads the value, which is empty for the name alone; None if it cannot be read."""
    form: str = ""
    """How the value is written; empty if there is none."""

    @property
    def notation(self) -> str:
        """How it is written."""
        return f"{self.name}:{self.form}" if self.form else self.name


PERSON_SKILLS = "person"
SKILL_SOURCES = Registry(
    "skill_sources",
    SkillSourceKind,
    (
        SkillSourceKind(MODEL_SKILLS, "the language model", lambda _value: None),
        SkillSourceKind(
            OracleResponder.name,
            "the gold reasoning of a generated world, whatever was retrieved",
            lambda value: None if value else GoldSkillSource(),
        ),
        SkillSourceKind(
            ReaderResponder.name,
            "the gold reasoning as far as the retrieved passages and rows state its facts",
            lambda value: None if value else GoldSkillSource(reads=True),
        ),
        SkillSourceKind(
            FAULTY,
            f"the oracle with replies spoilt at this rate, by {', '.join(FAULT_KINDS)}",
            _parse_faulty,
            "RATE:SEED[:KIND]",
        ),
        SkillSourceKind(
            ScriptResponder.name,
            'lines {"skill", "node", "reply"} of a file, in order; the node is optional',
            lambda value: ScriptSource(Path(value)) if value else None,
            "FILE",
        ),
        SkillSourceKind(
            StoredResponder.name, "the replies of stored runs to the same requests", _parse_stored, "TRACE[,TRACE ...]"
        ),
    ),
    raises=(ReasonerError, UnknownSkillSource, ChatError, WorldError, StoreError),
)
"""What replies to skills, by the name that its notation begins with."""
ASK_SKILLS = (MODEL_SKILLS, OracleResponder.name, ReaderResponder.name)
"""Those of them that can play the skills of a single question on the Ask page."""


def list_skill_choices() -> str:
    """What can reply to skills, for help texts and messages."""
    return "; ".join(f"{kind.notation}: {kind.description}" for kind in SKILL_SOURCES.values())


def parse_skill_source(text: str) -> SkillSource | None:
    """Read the value of --skills; None for the model, UnknownSkillSource for an unknown one."""
    if text == MODEL_SKILLS:
        return None
    name, _, value = text.partition(":")
    if name == PERSON_SKILLS:
        raise UnknownSkillSource("no person can be asked for replies here; play skills on the Ask page")
    kind = SKILL_SOURCES.get(name)
    source = None if kind is None else kind.parse(value)
    if source is None:
        raise UnknownSkillSource(f"there are no skills {text!r}; choose one of: {list_skill_choices()}")
    return source
