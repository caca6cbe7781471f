"""Queries written by a language model, tried on the graph, and written anew where none of them answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from tools.chat import Chat, Message
from tools.chat_errors import ChatError
from tools.json_reply import ReplyUnreadable, Words, read_reply
from tools.prompt import Prompts
from tools.query_facts import facts_for
from tools.query_trial import Trial, try_query
from tools.tool import Encode
from worlds.source import Entity, GraphSource

REPAIRS = 2
MOST_CANDIDATES = 3
_LONGEST_READING = 400
_FENCED = re.compile(r"```(?:sparql)?\s*\n(.+?)```", re.DOTALL | re.IGNORECASE)

prompt = Prompts("tools")


class _Candidate(BaseModel):
    sparql: Words
    reading: Words | None = None


class _Reply(BaseModel):
    candidates: list[_Candidate]


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote: the queries that answer, and before them those that did not."""

    answering: tuple[Trial, ...] = ()
    tried: tuple[Trial, ...] = ()
    failure: str = ""
    """Why the model wrote no more, where it failed."""

    @property
    def empty(self) -> tuple[Trial, ...]:
        """Those that run and match nothing, the last first."""
        return tuple(trial for trial in reversed(self.tried) if trial.runs)

    @property
    def trouble(self) -> str:
        """Why no query is offered, in a sentence."""
        if self.failure:
            return self.failure
        return f"No query of the language model answers; the last one: {self.tried[-1].trouble}" if self.tried else ""


def write_queries(graph: GraphSource, question: str, entities: Sequence[Entity], chat: Chat, encode: Encode) -> Written:
    """The model's queries for the question, repaired at most twice; `failure` tells where the model fails."""
    facts = facts_for(graph, question, entities, encode)
    asked = prompt("query_question", question=" ".join(question.split()), entities=facts.entities, others=facts.others)
    messages = [Message("system", prompt("query")), Message("user", asked)]
    tried: list[Trial] = []
    for repair in range(REPAIRS + 1):
        reply = ""
        try:
            reply = chat.ask(messages).text
            candidates = _candidates(reply, chat.name)
        except ReplyUnreadable as unreadable:
            if repair == REPAIRS:
                return Written((), tuple(tried), str(unreadable))
            messages += [Message("assistant", reply), Message("user", f"{unreadable} Write the JSON object only.")]
            continue
        except ChatError as failed:
            return Written((), tuple(tried), str(failed))
        trials = [try_query(graph, one.sparql, _reading(one) or question) for one in candidates]
        tried += [trial for trial in trials if trial.trouble]
        answering = [trial for trial in trials if not trial.trouble]
        if answering:
            return Written(tuple(answering), tuple(tried))
        messages += [Message("assistant", reply), Message("user", prompt("query_repair", trials=trials))]
    return Written((), tuple(tried))


def _reading(candidate: _Candidate) -> str:
    """In one bounded line."""
    return " ".join((candidate.reading or "").split())[:_LONGEST_READING]


def _candidates(reply: str, model: str) -> list[_Candidate]:
    """The queries in the reply, each once; a fenced query without JSON around it is taken as it is."""
    try:
        found = read_reply(reply, _Reply, model).candidates
    except ReplyUnreadable:
        found = [_Candidate(sparql=fenced) for fenced in _FENCED.findall(reply)]
        if not found:
            raise
    unique = {" ".join(one.sparql.split()): one for one in reversed(found) if one.sparql.strip()}
    if not unique:
        raise ReplyUnreadable(f"{model} wrote no query.")
    return [_Candidate(sparql=one.sparql.strip(), reading=one.reading) for one in reversed(unique.values())][
        :MOST_CANDIDATES
    ]
