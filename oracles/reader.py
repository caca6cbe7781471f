"""The reader: replies to skills with what the passages of a request state, read by the rules of generated worlds."""

from collections.abc import Sequence
from typing import Any, TypeVar

from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import OperateRequest
from showhow.reasoners.baselines.skills import ReasonSentenceReply, SelfAskReply
from showhow.reasoners.geek.skills import ConcludeReply, ExtractRequest
from showhow.reasoners.pdrr.skills import CompleteRequest
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import AnswersReply, format_values
from showhow.reasoners.sources import BareQuestion

AnswersT = TypeVar("AnswersT", bound=AnswersReply)


class ReaderResponder:
    """Replies with the gold reasoning of one question as far as the passages of the request state its facts.

    Of several answers it gives those that are stated, and it gives the id of an answer only where a passage shows it.
    Its plans are those of gold traces: who meets two conditions is looked for among the few who meet one of them.
    """

    name = "reader"

    def __init__(self, gold: GoldReasoning) -> None:
        self._oracle = OracleResponder(gold.narrow())

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """The reply of the oracle as far as passages state it; unknown if they state none of it."""
        value = self._oracle.reply(call, rejections).value
        request = call.request
        if isinstance(value, SelfAskReply) and value.intermediate is not None:
            value = value.model_copy(update={"intermediate": self._read(value.intermediate, request)})
        elif isinstance(value, ReasonSentenceReply) and value.final is not None:
            value = value.model_copy(update={"final": self._read(value.final, request)})
        elif isinstance(value, AnswersReply):
            rests_on_unknown = any(fact.unknown for fact in getattr(request, "state", ()))
            rests_on_unknown |= isinstance(value, ConcludeReply) and not self._oracle.follows(request)
            value = say_unknown(value) if rests_on_unknown else self._read(value, request)
        return SkillReply("" if value is None else value.model_dump_json(exclude_none=True), value)

    def _read(self, reply: AnswersT, request: Any) -> AnswersT:
        if reply.unknown or (not isinstance(request, BareQuestion) and not hasattr(request, "passages")):
            return reply
        if isinstance(request, BareQuestion):
            return say_unknown(reply)
        passages, finder = request.passages, self._oracle.facts
        stated = [finder.find_stated(*asked, passages) for asked in self._oracle.list_asked(request)]
        support = list(dict.fromkeys(id_ for part in stated for id_ in part.support))
        is_whole = not any(part.missing for part in stated)
        answers = reply.answers
        if isinstance(request, OperateRequest | CompleteRequest | ExtractRequest) and len(stated) == 1:
            # Of one operation some answers may be stated; what follows from several needs all of their facts.
            answers = stated[0].answers
            is_whole = is_whole or bool(answers)
        if not is_whole:
            return say_unknown(reply)
        shown = [
            answer if finder.shows_id(answer, passages) else answer.model_copy(update={"entity": None})
            for answer in answers
        ]
        fact = {"fact": f"{request.planned} {format_values(shown)}."} if isinstance(request, ExtractRequest) else {}
        return reply.model_copy(update={"answers": shown, "support": support, **fact})


def say_unknown(reply: AnswersT) -> AnswersT:
    """The reply without answers."""
    return reply.model_copy(update={"answers": [], "support": [], "unknown": True})
