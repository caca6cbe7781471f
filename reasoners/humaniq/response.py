"""The final response: from the question, the answers of the sources and the evidence, in the style that is wanted.

The marks in a response that name the steps it rests on.
"""

import re
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from db.models import Step
from db.recording import TraceAnswers
from fewshot_library.formats.humaniq_tools import format_input_line
from llm.client import ChatClient
from llm.errors import ChatError
from llm.streaming import stream_reply
from llm.structured_output import split_reasoning
from llm.types import Message
from llm.usage import Usage
from reasoners.answers.agreement import Agreement, measure_agreement
from reasoners.answers.extraction import strip_answer_markup, strip_or_none
from reasoners.base import Action, FinalAnswer, QuestionRefused, Task
from reasoners.humaniq.options import AgentOptions
from reasoners.prompting import truncation
from reasoners.prompting.builder import MIN_OBSERVATION_TOKENS, PromptTooLong
from reasoners.prompting.parts import render_prompt
from reasoners.prompting.truncation import truncate_observation
from tools.tool import ToolResult
from worlds.importers.articles import split_sentences

# Models join several steps in one mark, and use brackets of other kinds.
_STEP_REFERENCE = re.compile(r"\s*[\[(【]\s*steps?\s*(\d(?:[\d\s,;&–-]|and|to|steps?)*)[\])】]", re.IGNORECASE)
_STEP_RANGE = re.compile(r"(\d{1,9})(?:\s*(?:-|–|to)\s*(\d{1,9}))?", re.IGNORECASE)
_MAX_RANGE_STEPS = 100


@dataclass(frozen=True, slots=True)
class LinkedResponse:
    """A response whose marks all name a step that observed something."""

    text: str
    links: tuple[dict[str, Any], ...]
    """Of each mark the step and its place in the text."""
    invalid_references: int
    """Marks that named no such step."""
    unlinked_sentences: int
    """Sentences that rest on no step."""


def _parse_step_numbers(mark: str) -> Iterator[int]:
    """The steps that a mark names, those of a range too."""
    for first, last in _STEP_RANGE.findall(mark):
        end = int(last or first)
        yield from range(int(first), end + 1) if 0 <= end - int(first) < _MAX_RANGE_STEPS else (int(first), end)


def link_evidence(text: str, steps: Collection[int]) -> LinkedResponse:
    """The response with the marks that name one of these steps; the others are taken out and counted."""
    dropped = 0

    def checked(match: re.Match[str]) -> str:
        nonlocal dropped
        named = list(dict.fromkeys(_parse_step_numbers(match[1])))
        known = [number for number in named if number in steps]
        dropped += len(named) - len(known)
        return "".join(f" [step {number}]" for number in known)

    plain = _STEP_REFERENCE.sub(checked, text).strip()
    links = tuple(
        {"step": int(match[1]), "start": match.start(), "end": match.end()}
        for match in re.finditer(r"\[step (\d+)\]", plain)
    )
    # A mark behind a full stop belongs to the sentence before it.
    moved = re.sub(r"([.!?])((?: \[step \d+\])+)", r"\2\1", plain)
    unlinked = sum("[step " not in sentence for sentence in split_sentences(moved))
    return LinkedResponse(plain, links, dropped, unlinked)


_SECTION_LABEL = re.compile(r"^[ \t*]*(Answer|Response)[ \t*]*:[ \t*]*", re.MULTILINE | re.IGNORECASE)
MAX_SHORT_ANSWER_CHARS = 1_000
"""Characters of a short answer; what is longer is none."""


@dataclass(frozen=True, slots=True)
class ResponseWriter:
    """Writes the response of one run."""

    options: AgentOptions
    task: Task
    chat: ChatClient

    def write_final_answer(
        self, answers: TraceAnswers, evidence: Sequence[Step], usage: Usage
    ) -> Generator[Action, ToolResult | None, FinalAnswer]:
        """The conclusion with the response and how far the sources agree; Refused where none of them has an answer."""
        details: dict[str, Any] = {"style": self.options.response}
        if "model" in self.options.compared_sources:
            # Asked apart from the steps, so that what it remembers is a source of its own.
            own, took, failure = self._ask_without_tools()
            answers, usage = replace(answers, answer_model=own), usage + took
            details |= {"own_answer_failed": failure} if failure else {}
        known = (answers.final_answer, answers.answer_text, answers.answer_graph, answers.answer_model)
        answers = replace(answers, final_answer=next(filter(None, known), ""))
        if not answers.final_answer:
            # A step of its own, so that what these calls took is not lost.
            yield Action(
                answers.final_thought or "No answer was found.", usage=usage.to_json() if usage.calls else None
            )
            raise QuestionRefused("Neither the sources nor the model have an answer to this question.")
        agreed = self._measure_agreement(answers)
        details["agreement"] = agreed.to_json()
        if self.options.response != "none":
            try:
                answers, written, took = self._write_response(answers, agreed, evidence)
            except (ChatError, PromptTooLong) as failed:
                # The answer is there already; only its wording is missing, which is told.
                took = getattr(failed, "usage", None) or Usage()
                written = {"response": None, "unwritten": str(failed)}
            usage, details = usage + took, details | written
        return FinalAnswer(answers, usage.to_json(), details)

    def _ask_without_tools(self) -> tuple[str | None, Usage, str | None]:
        message = Message("user", render_prompt("own_answer", question=self.task.question))
        try:
            reply = stream_reply(self.chat.with_purpose("own answer"), [message])
        except ChatError as failed:
            return None, failed.usage or Usage(), str(failed)
        if reply.stopped == "length":
            return None, reply.usage, "The model's own answer was cut off, because it was too long."
        said = split_reasoning(reply.text)[1]
        return strip_or_none(strip_answer_markup(_split_sections(said).get("answer", said))), reply.usage, None

    def _measure_agreement(self, answers: TraceAnswers) -> Agreement:
        said = {"text": answers.answer_text, "graph": answers.answer_graph, "model": answers.answer_model}
        return measure_agreement({source: said[source] for source in self.options.compared_sources})

    def _write_response(
        self, answers: TraceAnswers, agreed: Agreement, evidence: Sequence[Step]
    ) -> tuple[TraceAnswers, dict[str, Any], Usage]:
        seen = [step for step in evidence if step.observation is not None]
        message = self._build_message(answers, agreed, seen)
        reply = stream_reply(self.chat.with_purpose("response"), [message], on_text=self.task.on_text)
        text = split_reasoning(reply.text)[1]
        if reply.stopped == "length" or not text:
            why = "was cut off, because it was too long" if text else "says nothing"
            return answers, {"response": None, "unwritten": f"What the model wrote as a response {why}."}, reply.usage
        said = _split_sections(text)
        short = strip_or_none(strip_answer_markup(said.get("answer") or ("" if said else text)))
        if short is not None and len(short) <= MAX_SHORT_ANSWER_CHARS and (said or self.options.response == "short"):
            answers = replace(answers, final_answer=short)
        if self.options.response == "short":
            return answers, {"response": answers.final_answer, "links": []}, reply.usage
        body, steps = said.get("response") or short or said.get("answer") or text, {step.position for step in seen}
        linked = link_evidence(" ".join(filter(None, (agreed.hedge, body))), steps)
        details = {
            "response": linked.text,
            "links": list(linked.links),
            "dropped_links": linked.invalid_references,
            # How sure the answer is rests on no step.
            "unlinked": link_evidence(body, steps).unlinked_sentences,
            "hedge": agreed.hedge,
        }
        return answers, details, reply.usage

    def _build_message(self, answers: TraceAnswers, agreed: Agreement, seen: Sequence[Step]) -> Message:
        """The request; observations give way as in the other prompts, the oldest first, and are left out at last."""
        room = self.options.context_tokens - self.options.reply_tokens
        for given_way in range(2 * len(seen) + 1):
            left_out = max(given_way - len(seen), 0)
            shown = [self._format_evidence(step, cut=place < given_way) for place, step in enumerate(seen)]
            text = render_prompt(
                "response",
                question=self.task.question,
                evidence=shown[left_out:],
                text=answers.answer_text,
                graph=answers.answer_graph,
                own=answers.answer_model,
                own_asked=self.options.own_answer,
                agreement=agreed.summary,
                hedge=agreed.hedge,
                style=self.options.response,
            )
            if truncation.count_message_tokens([Message("user", text)]) <= room:
                return Message("user", text)
        raise PromptTooLong(f"The response was not written: its prompt does not fit into {room:,} tokens.")

    def _format_evidence(self, step: Step, *, cut: bool) -> dict[str, Any]:
        most = min(MIN_OBSERVATION_TOKENS, self.options.observation_tokens) if cut else self.options.observation_tokens
        text = truncate_observation(step.observation or "", most, self.task.question, self.task.context.encode)
        call = (
            f"{step.tool}: {format_input_line(step.tool, step.arguments, self.task.question) or ''}"
            if step.tool
            else ""
        )
        return {"position": step.position, "call": call, "text": text}


def _split_sections(text: str) -> dict[str, str]:
    """The parts of a response by their marks, in lower case."""
    _, *rest = _SECTION_LABEL.split(text)
    return {name.casefold(): value.strip() for name, value in zip(rest[::2], rest[1::2], strict=True)}
