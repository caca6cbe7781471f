"""The final response: the answer of the run, or the written response with links to the steps that it cites.

A short response is the answer of the run, without a further call. The model is asked to decide only if the run has no
answer of its own and its sources disagree, as in late fusion. With final=weighed one request always decides, as the
paper's final response generation does: it gets the question, the model's own answer and the run with its answer.
"""

import re
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from showhow.db.models import Step
from showhow.db.traces.recording import TraceAnswers
from showhow.fewshot_library.formats.humaniq_record import format_input_line
from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError
from showhow.llm.structured_output import ReplyParseError, ReplyText, parse_reply, request_json_reply, split_reasoning
from showhow.llm.types import Message
from showhow.llm.usage import Usage
from showhow.reasoners.answers.extraction import (
    find_chosen_answer,
    find_labelled_answer,
    join_answers,
    strip_answer_markup,
    strip_or_none,
)
from showhow.reasoners.answers.normalization import Agreement, answers_equal, measure_agreement
from showhow.reasoners.base import Action, FinalAnswer, QuestionRefused, Task
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.prompting.builder import PromptTooLong, render_prompt
from showhow.reasoners.prompting.run_state import MIN_OBSERVATION_TOKENS, count_message_tokens, truncate_observation
from showhow.tools.tool import ToolResult
from showhow.worlds.sentences import split_sentences

# Models cite several steps in one reference, and use other kinds of brackets.
_STEP_REFERENCE = re.compile(
    r"(?<!\s)\s*+[\[(【]\s*+steps?\s*+(\d(?:[\d\s,;&–-]|and|to|steps?)*+)[\])】]", re.IGNORECASE
)
_STEP_RANGE = re.compile(r"(\d{1,9})(?:\s*+(?:-|–|to)\s*+(\d{1,9}))?", re.IGNORECASE)
_MAX_RANGE_STEPS = 100


@dataclass(frozen=True, slots=True)
class LinkedResponse:
    """A response with its step references; every reference names a step with an observation."""

    text: str
    links: tuple[dict[str, Any], ...]
    """For each reference, the step and the span in the text."""
    invalid_references: int
    """The number of references removed because they name no such step."""
    unlinked_sentences: int
    """The number of sentences without a reference."""


def _parse_step_numbers(reference: str) -> Iterator[int]:
    """Yield the steps that a reference names, including those inside a range."""
    for first, last in _STEP_RANGE.findall(reference):
        end = int(last or first)
        yield from range(int(first), end + 1) if 0 <= end - int(first) < _MAX_RANGE_STEPS else (int(first), end)


def link_evidence(text: str, steps: Collection[int]) -> LinkedResponse:
    """Normalize the step references of a response; remove and count those that name none of `steps`."""
    invalid = 0

    def replace_reference(match: re.Match[str]) -> str:
        nonlocal invalid
        numbers = list(dict.fromkeys(_parse_step_numbers(match[1])))
        valid = [number for number in numbers if number in steps]
        invalid += len(numbers) - len(valid)
        return "".join(f" [step {number}]" for number in valid)

    linked_text = _STEP_REFERENCE.sub(replace_reference, text).strip()
    links = tuple(
        {"step": int(match[1]), "start": match.start(), "end": match.end()}
        for match in re.finditer(r"\[step (\d{1,9})\]", linked_text)
    )
    # A reference behind a full stop belongs to the sentence before it.
    moved = re.sub(r"([.!?])((?: \[step \d+\])+)", r"\2\1", linked_text)
    unlinked = sum("[step " not in sentence for sentence in split_sentences(moved))
    return LinkedResponse(linked_text, links, invalid, unlinked)


_RESPONSE_LABEL = re.compile(r"^[ \t>#*_-]*Response[ \t]*[*_]*:[*_]*[ \t]*", re.MULTILINE | re.IGNORECASE)
_ANSWER_LINE = re.compile(r"\A[ \t>#*_-]*(?:(?:Final|Short) )?Answer[ \t]*[*_]*:[^\n]*\n*", re.IGNORECASE)
MAX_SHORT_ANSWER_CHARS = 1_000
"""A longer text is not accepted as a short answer."""
MAX_OWN_ANSWER_REQUESTS = 2
"""The model's own answer is asked for again if the reply has not the requested form."""
_FENCE_CHARS = 12


def _to_list(value: object) -> object:
    return [] if value is None else value if isinstance(value, list) else [value]


class _OwnAnswerReply(BaseModel):
    """The reply to own_answer.jinja."""

    answers: Annotated[list[ReplyText], BeforeValidator(_to_list)] = Field(
        validation_alias=AliasChoices("answers", "answer")
    )
    known: bool = True

    @property
    def text(self) -> str | None:
        """The answers as one text; None if there is none."""
        answers = [strip_or_none(strip_answer_markup(answer)) for answer in self.answers]
        return join_answers([answer for answer in answers if answer]) or None if self.known else None


def choose_fence(texts: Sequence[str]) -> str:
    """A line to set around texts that none of them can contain: it depends on what all of them say.

    Equal texts have equal fences, so that a request that is made again is the same request.
    """
    digest = sha256("\0".join(texts).encode()).hexdigest()
    while any(digest[:_FENCE_CHARS] in text for text in texts):
        digest = sha256(digest.encode()).hexdigest()
    return f"===== {digest[:_FENCE_CHARS]} ====="


@dataclass(frozen=True, slots=True)
class ResponseWriter:
    """Writes the response of one run."""

    options: AgentOptions
    task: Task
    chat: ChatClient

    def write_final_answer(
        self, answers: TraceAnswers, evidence: Sequence[Step], usage: Usage
    ) -> Generator[Action, ToolResult | None, FinalAnswer]:
        """Return the final answer with the response and the agreement of the sources.

        QuestionRefused if neither the sources nor the model have an answer.
        """
        details: dict[str, Any] = {"style": self.options.response}
        if "model" in self.options.compared_sources:
            # Asked without the steps, so that the model's memory is an independent source.
            own_answer, call_usage, failure = self._ask_without_tools()
            answers, usage = replace(answers, answer_model=own_answer), usage + call_usage
            details |= {"own_answer_failed": failure} if failure else {}
        workflow, weighs = answers.final_answer, self.options.final == "weighed"
        must_decide = weighs or _needs_decision(answers)
        candidates = (answers.final_answer, answers.answer_text, answers.answer_graph, answers.answer_model)
        answers = replace(answers, final_answer=next(filter(None, candidates), ""))
        if not answers.final_answer:
            # Stored as a step, so that the usage of these calls is not lost.
            yield Action(
                answers.final_thought or "No answer was found.", usage=usage.to_json() if usage.calls else None
            )
            was_asked = "model" in self.options.compared_sources
            have = "Neither the sources nor the model have an" if was_asked else "The sources have no"
            raise QuestionRefused(f"{have} answer to this question.")
        agreement = self._measure_agreement(answers)
        details["agreement"] = agreement.to_json()
        if self.options.response == "normal" or (must_decide and self.options.response == "short"):
            try:
                answers, response_details, call_usage = self._write_response(
                    answers, agreement, evidence, must_decide=must_decide, workflow=workflow
                )
            except (ChatError, PromptTooLong) as error:
                # The answer is known; only the written response is missing, and the trace stores why.
                call_usage = getattr(error, "usage", None) or Usage()
                response_details = {"response": None, "response_error": str(error)}
            usage, details = usage + call_usage, details | response_details
        elif self.options.response == "short":
            details |= {"response": answers.final_answer, "links": []}
        return FinalAnswer(answers, usage.to_json(), details)

    def _ask_without_tools(self) -> tuple[str | None, Usage, str | None]:
        """Return the model's own answer, the usage, and the reason if there is no reply in the requested form."""
        messages = [Message("user", render_prompt("own_answer", question=_to_single_line(self.task.question)))]
        chat, usage, failure = self.chat.with_purpose("own answer"), Usage(), ""
        for _ in range(MAX_OWN_ANSWER_REQUESTS):
            try:
                reply = request_json_reply(chat, messages, _OwnAnswerReply)
            except ChatError as error:
                return None, usage + (error.usage or Usage()), str(error)
            usage += reply.usage
            if reply.stopped == "length":
                return None, usage, "The model's own answer was cut off, because it was too long."
            try:
                return parse_reply(reply.text, _OwnAnswerReply, chat.name).text, usage, None
            except ReplyParseError as error:
                failure = str(error)
            text = split_reasoning(reply.text)[1]
            labelled = find_labelled_answer(text)
            if labelled is not None or strip_or_none(text) is None:
                return strip_or_none(labelled), usage, None
            messages += [Message("assistant", text), Message("user", f"{failure} Write the JSON object only.")]
        return None, usage, failure

    def _measure_agreement(self, answers: TraceAnswers) -> Agreement:
        answer_by_source = {"text": answers.answer_text, "graph": answers.answer_graph, "model": answers.answer_model}
        return measure_agreement({source: answer_by_source[source] for source in self.options.compared_sources})

    def _write_response(
        self, answers: TraceAnswers, agreement: Agreement, evidence: Sequence[Step], *, must_decide: bool, workflow: str
    ) -> tuple[TraceAnswers, dict[str, Any], Usage]:
        observed = [step for step in evidence if step.observation is not None]
        message = self._build_message(answers, agreement, observed, must_decide=must_decide, workflow=workflow)
        reply = self.chat.with_purpose("response").ask([message], on_text=self.task.on_text)
        text = split_reasoning(reply.text)[1]
        if reply.stopped == "length" or not text:
            reason = "was cut off, because it was too long" if text else "says nothing"
            details: dict[str, Any] = {
                "response": None,
                "response_error": f"What the model wrote as a response {reason}.",
            }
            return answers, details, reply.usage
        before, *rest = _RESPONSE_LABEL.split(text)
        if must_decide:
            candidates = [answers.answer_text, answers.answer_graph]
            candidates += [answers.answer_model, workflow] if self.options.final == "weighed" else []
            chosen = find_chosen_answer(before, [*filter(None, candidates)])
            if chosen is not None and len(chosen) <= MAX_SHORT_ANSWER_CHARS:
                answers = replace(answers, final_answer=chosen)
        if self.options.response == "short":
            return answers, {"response": answers.final_answer, "links": []}, reply.usage
        body = " ".join(rest).strip() or _ANSWER_LINE.sub("", before).strip() or answers.final_answer
        steps = {step.position for step in observed}
        linked = link_evidence(" ".join(filter(None, (agreement.hedge, body))), steps)
        details = {
            "response": linked.text,
            "links": list(linked.links),
            "dropped_links": linked.invalid_references,
            # The hedge is not counted, since it cites no step.
            "unlinked": link_evidence(body, steps).unlinked_sentences,
            "hedge": agreement.hedge,
        }
        return answers, details, reply.usage

    def _build_message(
        self, answers: TraceAnswers, agreement: Agreement, observed: Sequence[Step], *, must_decide: bool, workflow: str
    ) -> Message:
        """Build the request; if it is too long, truncate observations, the oldest first, then leave them out."""
        token_limit = self.options.prompt_tokens
        for reductions in range(2 * len(observed) + 1):
            omitted = max(reductions - len(observed), 0)
            formatted = [self._format_evidence(step, cut=index < reductions) for index, step in enumerate(observed)]
            shown = formatted[omitted:]
            # Every value outside the fences is on one line, so that it cannot look like a line of the prompt.
            text = render_prompt(
                "response",
                question=_to_single_line(self.task.question),
                evidence=shown,
                fence=choose_fence([text for step in shown for text in (step["text"], step["call"])]),
                text=_to_single_line(answers.answer_text),
                graph=_to_single_line(answers.answer_graph),
                own=_to_single_line(answers.answer_model),
                own_asked=self.options.own_answer,
                answer=_to_single_line(answers.final_answer),
                agreement=_to_single_line(agreement.summary),
                hedge=_to_single_line(agreement.hedge),
                decide=must_decide,
                weigh=self.options.final == "weighed",
                workflow=_to_single_line(" ".join(filter(None, (answers.final_thought, workflow)))) if workflow else "",
                style=self.options.response,
            )
            if count_message_tokens([Message("user", text)]) <= token_limit:
                return Message("user", text)
        raise PromptTooLong(f"The response was not written: its prompt does not fit into {token_limit:,} tokens.")

    def _format_evidence(self, step: Step, *, cut: bool) -> dict[str, Any]:
        max_tokens = (
            min(MIN_OBSERVATION_TOKENS, self.options.observation_tokens) if cut else self.options.observation_tokens
        )
        text = truncate_observation(step.observation or "", max_tokens, self.task.question, self.task.context.encode)
        call = (
            f"{step.tool}: {format_input_line(step.tool, step.arguments, self.task.question) or ''}"
            if step.tool
            else ""
        )
        thought = "" if cut else step.thought
        return {
            "position": step.position,
            "thought": _to_single_line(thought),
            "call": _to_single_line(call),
            "text": text,
        }


def _needs_decision(answers: TraceAnswers) -> bool:
    """Whether the run has no answer of its own, and text and graph have different ones."""
    text, graph = answers.answer_text, answers.answer_graph
    return not answers.final_answer and text is not None and graph is not None and not answers_equal(text, graph)


def _to_single_line(text: str | None) -> str:
    return " ".join((text or "").split())
