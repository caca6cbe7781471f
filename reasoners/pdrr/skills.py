"""The skills of PDRR: requests, replies and their checks."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.pdrr.triples import Triple, check_triples, is_unknown, parse_condition
from showhow.reasoners.skills.skill import Fallback, Skill
from showhow.reasoners.skills.values import (
    AnswerValue,
    OfferedRelation,
    QuotingReply,
    ReasonedQuotingReply,
    SourcePassage,
    check_answers,
    check_supported_answers,
)

_PACKAGE = "showhow.reasoners.pdrr"


Structure = Literal["chain", "parallel"]


class PdrrQuestion(BaseModel):
    """A question whose structure is asked for."""

    question: str


class TriplesRequest(PdrrQuestion):
    """A question with the structure by which it is decomposed; None in requests of former versions."""

    structure: Structure | None = None


class StructureReply(BaseModel):
    """Whether each fact depends on the one before, or several are independent."""

    structure: Structure
    """chain if each fact depends on the one before, parallel if some are independent."""

    def __str__(self) -> str:
        return self.structure


class TriplesReply(BaseModel):
    """The triples in the order of completion, and what is asked for."""

    triples: list[Triple]
    """The facts to be found, in the order of completion."""
    answer: ReplyText
    """What is asked for: an unknown such as person#2, the ends that are compared, or yes or no."""

    def __str__(self) -> str:
        return "\n".join([*map(str, self.triples), f"asked for: {self.answer}"])


class RelationsRequest(BaseModel):
    """A triple, the known values of its end, and the relations to choose from."""

    triple: Triple
    known: list[AnswerValue]
    known_is: Literal["subject", "object"]
    """The end of the triple that the known values are."""
    relations: list[OfferedRelation]
    keep: int


class ChosenRelation(BaseModel):
    """A relation that may state the triple, with a score from 0 to 1."""

    model_config = ConfigDict(frozen=True)

    id: ReplyText
    """The id of an offered relation."""
    direction: Literal["head", "tail"]
    """The end at which the known value stands: head or tail."""
    score: float = 1.0
    """How likely it is that the relation states the triple, from 0 to 1."""


class RelationsReply(BaseModel):
    """The relations to follow, best first; none if no relation states the triple."""

    relations: list[ChosenRelation]
    """The relations to follow, best first; none if no relation states the triple."""

    def __str__(self) -> str:
        return ", ".join(f"{choice.id} as {choice.direction}" for choice in self.relations) or "no relation"


def _check_relations(request: RelationsRequest, reply: RelationsReply) -> str | None:
    offered = {(relation.id, relation.direction) for relation in request.relations}
    if strange := [choice for choice in reply.relations if (choice.id, choice.direction) not in offered]:
        return f"The relation {strange[0].id} as {strange[0].direction} was not offered; choose from the list."
    if len(reply.relations) > request.keep:
        return f"There are {len(reply.relations)} relations; keep at most {request.keep}."
    return _check_scores(reply.relations)


def _check_scores(choices: "Sequence[ChosenRelation | ChosenFact]") -> str | None:
    # A score that is not a number is outside too.
    outside = next((choice.score for choice in choices if not 0 <= choice.score <= 1), None)
    return None if outside is None else f"The score {outside:g} is not from 0 to 1."


class CompleteRequest(BaseModel):
    """A triple, the known values of one end, and passages that may state the other end."""

    triple: Triple
    known: list[AnswerValue]
    from_subject: bool
    passages: list[SourcePassage]


class CandidateFact(BaseModel):
    """A fact about a known value that may complete a triple."""

    model_config = ConfigDict(frozen=True)

    known: AnswerValue
    relation: str
    """The label of the relation in the graph, or the words of the triple for a fact of a text."""
    other: AnswerValue
    support: tuple[str, ...] = ()
    """The ids of the passages that state it."""

    def __str__(self) -> str:
        return f"{self.known.text}: {self.relation} {self.other.text}"


class OfferedFact(BaseModel):
    """A fact that the pruner may keep: its number, and the value at its other end."""

    number: int
    relation: str
    other: AnswerValue


class PruneTriplesRequest(BaseModel):
    """A triple with the value of its known end, and the facts that may complete it."""

    question: str
    triple: Triple
    known: AnswerValue
    known_is: Literal["subject", "object"]
    facts: list[OfferedFact]
    keep: int


class ChosenFact(BaseModel):
    """The number of a fact to keep, with a score from 0 to 1."""

    number: int
    """The number of the fact in the list."""
    # Without a default: the beam compares facts of several calls by their scores.
    score: float
    """How likely the fact leads to the answer, from 0 to 1."""


class PruneTriplesReply(BaseModel):
    """The facts to keep, best first; none if no fact states the triple."""

    facts: list[ChosenFact]
    """The facts to keep, best first."""

    def __str__(self) -> str:
        return ", ".join(f"fact {choice.number}: {choice.score:g}" for choice in self.facts) or "no fact"


def _check_pruning(request: PruneTriplesRequest, reply: PruneTriplesReply) -> str | None:
    offered = {fact.number for fact in request.facts}
    numbers = [choice.number for choice in reply.facts]
    if strange := [number for number in numbers if number not in offered]:
        return f"There is no fact {strange[0]}; use the numbers of the list."
    if len(set(numbers)) < len(numbers):
        return "A fact is kept twice; name each at most once."
    if len(numbers) > request.keep:
        return f"There are {len(numbers)} facts; keep at most {request.keep}."
    return _check_scores(reply.facts)


class NumberedChain(BaseModel):
    """Facts that continue from each other, from what the question names towards the answer."""

    number: int
    facts: list[CandidateFact]


class BestChainRequest(BaseModel):
    """A question, its triples, and the chains of facts that complete them."""

    question: str
    triples: list[Triple]
    answer: str
    chains: list[NumberedChain]


class BestChainReply(BaseModel):
    """Why a chain answers the question best, and its number; None keeps all chains."""

    reasons: ReplyText
    """Why this chain answers the question best."""
    chain: int | None
    """The number of the chain."""

    def __str__(self) -> str:
        return f"{'all chains' if self.chain is None else f'chain {self.chain}'}: {self.reasons}"


def _check_best_chain(request: BestChainRequest, reply: BestChainReply) -> str | None:
    numbers = {chain.number for chain in request.chains}
    return None if reply.chain in numbers else f"There is no chain {reply.chain}; choose one number of the list."


class CompletedTriple(BaseModel):
    """A triple with the relations that were followed and the ids of the passages with its facts."""

    triple: Triple
    relations: list[ChosenRelation] = Field(default_factory=list)
    facts: list[str] = Field(default_factory=list)
    from_graph: bool = True
    kept: list[CandidateFact] | None = None
    """The facts that were kept, where facts are pruned; None where all of them are kept as sets of values."""


class AnswerTriplesRequest(BaseModel):
    """A question, its completed triples, the values of their unknowns, and the facts."""

    question: str
    triples: list[CompletedTriple]
    answer: str
    values: dict[str, list[AnswerValue]]
    passages: list[SourcePassage]
    own: bool | None = None
    """Whether the model may add what it knows itself; None if not."""


def _check_answer(request: AnswerTriplesRequest, reply: ReasonedQuotingReply) -> str | None:
    # Without a passage there is nothing to name, and the reasoner refuses such an answer.
    needs_support = request.passages and not request.own
    return (check_supported_answers if needs_support else check_answers)(reply, request.passages)


def list_triples_shape(reply: TriplesReply) -> list[str]:
    """The triples by which of their ends are unknown or conditions."""
    return [f"{_end_kind(triple.subject)}-{_end_kind(triple.object)}" for triple in reply.triples]


def _end_kind(end: str) -> str:
    return "unknown" if is_unknown(end) else "known" if parse_condition(end) is None else "condition"


STRUCTURE: Skill[PdrrQuestion, StructureReply] = Skill(
    "structure",
    2,
    "I tell whether the facts form a chain or are independent.",
    _PACKAGE,
    PdrrQuestion,
    StructureReply,
    fallback=Fallback("parallel", lambda _request: StructureReply(structure="parallel")),
)
TRIPLES: Skill[TriplesRequest, TriplesReply] = Skill(
    "triples",
    2,
    "I write the question as triples.",
    _PACKAGE,
    TriplesRequest,
    TriplesReply,
    lambda _request, reply: check_triples(reply.triples, reply.answer),
    shape=list_triples_shape,
)
RELATIONS: Skill[RelationsRequest, RelationsReply] = Skill(
    "relations",
    3,
    "I choose the relations that state the triple.",
    _PACKAGE,
    RelationsRequest,
    RelationsReply,
    _check_relations,
    Fallback("no relation", lambda _request: RelationsReply(relations=[])),
)
COMPLETE: Skill[CompleteRequest, QuotingReply] = Skill(
    "complete",
    3,
    "I complete the triple from texts.",
    _PACKAGE,
    CompleteRequest,
    QuotingReply,
    lambda request, reply: check_supported_answers(reply, request.passages),
    Fallback("unknown", lambda _request: QuotingReply(answers=[], unknown=True)),
)
PRUNE_TRIPLES: Skill[PruneTriplesRequest, PruneTriplesReply] = Skill(
    "prune_triples",
    2,
    "I choose the facts that complete the triple.",
    _PACKAGE,
    PruneTriplesRequest,
    PruneTriplesReply,
    _check_pruning,
    Fallback("no fact", lambda _request: PruneTriplesReply(facts=[])),
)
BEST_CHAIN: Skill[BestChainRequest, BestChainReply] = Skill(
    "best_chain",
    2,
    "I choose the chain that answers the question.",
    _PACKAGE,
    BestChainRequest,
    BestChainReply,
    _check_best_chain,
    Fallback("all chains", lambda _request: BestChainReply(reasons="No usable reply.", chain=None)),
)
ANSWER_TRIPLES: Skill[AnswerTriplesRequest, ReasonedQuotingReply] = Skill(
    "answer_triples",
    4,
    "I answer from the completed triples.",
    _PACKAGE,
    AnswerTriplesRequest,
    ReasonedQuotingReply,
    _check_answer,
    Fallback("unknown", lambda _request: ReasonedQuotingReply(reasons="", answers=[], unknown=True)),
)
