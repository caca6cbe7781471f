"""The final response: from the question, the answers of the sources and the evidence, in the style that is wanted."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from db.models import Step
from db.recording import Answers
from fewshot_library.formats.humaniq_tools import input_line
from reasoners import tokens
from reasoners.agreement import Agreement, agreement
from reasoners.ending import present
from reasoners.hearing import asked
from reasoners.links import linked
from reasoners.plain_answer import plain_answer
from reasoners.prompt import prompt
from reasoners.prompting import SHORT, PromptTooLong
from reasoners.reasoner import Action, Conclusion, Refused, Saying, Task
from reasoners.setup import Setup
from reasoners.shortening import shortened
from tools.chat import Chat, Message
from tools.chat_errors import ChatError
from tools.thinking import apart
from tools.tool import Outcome
from tools.usage import Usage

_PART = re.compile(r"^[ \t*]*(Answer|Response)[ \t*]*:[ \t*]*", re.MULTILINE | re.IGNORECASE)
LONGEST_ANSWER = 1_000
"""Characters of a short answer; what is longer is none."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the response of one run."""

    setup: Setup
    task: Task
    chat: Chat
    stream: bool

    def conclude(
        self, answers: Answers, evidence: Sequence[Step], usage: Usage
    ) -> Generator[Action | Saying, Outcome | None, Conclusion]:
        """The conclusion with the response and how far the sources agree; Refused where none of them has an answer."""
        details: dict[str, Any] = {"style": self.setup.response}
        if "model" in self.setup.asked_sources:
            # Asked apart from the steps, so that what it remembers is a source of its own.
            own, took, failure = yield from self._own_answer()
            answers, usage = replace(answers, answer_model=own), usage + took
            details |= {"own_answer_failed": failure} if failure else {}
        known = (answers.final_answer, answers.answer_text, answers.answer_graph, answers.answer_model)
        answers = replace(answers, final_answer=next(filter(None, known), ""))
        if not answers.final_answer:
            # A step of its own, so that what these calls took is not lost.
            yield Action(
                answers.final_thought or "No answer was found.", usage=usage.to_json() if usage.calls else None
            )
            raise Refused("Neither the sources nor the model have an answer to this question.")
        agreed = self._agreement(answers)
        details["agreement"] = agreed.to_json()
        if self.setup.response != "none":
            try:
                answers, written, took = yield from self._written(answers, agreed, evidence)
            except (ChatError, PromptTooLong) as failed:
                # The answer is there already; only its wording is missing, which is told.
                took = getattr(failed, "usage", None) or Usage()
                written = {"response": None, "unwritten": str(failed)}
            usage, details = usage + took, details | written
        return Conclusion(answers, usage.to_json(), details)

    def _own_answer(self) -> Generator[Saying, None, tuple[str | None, Usage, str | None]]:
        message = Message("user", prompt("own_answer", question=self.task.question))
        try:
            reply = yield from asked(self.chat, [message], stream=False)
        except ChatError as failed:
            return None, failed.usage or Usage(), str(failed)
        if reply.stopped == "length":
            return None, reply.usage, "The model's own answer was cut off, because it was too long."
        said = apart(reply.text)[1]
        return present(plain_answer(_parts(said).get("answer", said))), reply.usage, None

    def _agreement(self, answers: Answers) -> Agreement:
        said = {"text": answers.answer_text, "graph": answers.answer_graph, "model": answers.answer_model}
        return agreement({source: said[source] for source in self.setup.asked_sources})

    def _written(
        self, answers: Answers, agreed: Agreement, evidence: Sequence[Step]
    ) -> Generator[Saying, None, tuple[Answers, dict[str, Any], Usage]]:
        seen = [step for step in evidence if step.observation is not None]
        message = self._message(answers, agreed, seen)
        reply = yield from asked(self.chat, [message], stream=self.stream)
        text = apart(reply.text)[1]
        if reply.stopped == "length" or not text:
            why = "was cut off, because it was too long" if text else "says nothing"
            return answers, {"response": None, "unwritten": f"What the model wrote as a response {why}."}, reply.usage
        said = _parts(text)
        short = present(plain_answer(said.get("answer") or ("" if said else text)))
        if short is not None and len(short) <= LONGEST_ANSWER and (said or self.setup.response == "short"):
            answers = replace(answers, final_answer=short)
        if self.setup.response == "short":
            return answers, {"response": answers.final_answer, "links": []}, reply.usage
        body, steps = said.get("response") or short or said.get("answer") or text, {step.position for step in seen}
        found = linked(" ".join(filter(None, (agreed.hedge, body))), steps)
        told = {
            "response": found.text,
            "links": list(found.links),
            "dropped_links": found.dropped,
            # How sure the answer is rests on no step.
            "unlinked": linked(body, steps).unlinked,
            "hedge": agreed.hedge,
        }
        return answers, told, reply.usage

    def _message(self, answers: Answers, agreed: Agreement, seen: Sequence[Step]) -> Message:
        """The request; observations give way as in the other prompts, the oldest first, and are left out at last."""
        room = self.setup.context_tokens - self.setup.reply_tokens
        for given_way in range(2 * len(seen) + 1):
            left_out = max(given_way - len(seen), 0)
            shown = [self._evidence(step, cut=place < given_way) for place, step in enumerate(seen)]
            text = prompt(
                "response",
                question=self.task.question,
                evidence=shown[left_out:],
                text=answers.answer_text,
                graph=answers.answer_graph,
                own=answers.answer_model,
                own_asked=self.setup.own_answer,
                agreement=agreed.words,
                hedge=agreed.hedge,
                style=self.setup.response,
            )
            if tokens.of_messages([Message("user", text)]) <= room:
                return Message("user", text)
        raise PromptTooLong(f"The response was not written: its prompt does not fit into {room:,} tokens.")

    def _evidence(self, step: Step, *, cut: bool) -> dict[str, Any]:
        most = min(SHORT, self.setup.observation_tokens) if cut else self.setup.observation_tokens
        text = shortened(step.observation or "", most, self.task.question, self.task.context.encode)
        call = f"{step.tool}: {input_line(step.tool, step.arguments, self.task.question) or ''}" if step.tool else ""
        return {"position": step.position, "call": call, "text": text}


def _parts(text: str) -> dict[str, str]:
    """The parts of a response by their marks, in lower case."""
    _, *rest = _PART.split(text)
    return {name.casefold(): value.strip() for name, value in zip(rest[::2], rest[1::2], strict=True)}
