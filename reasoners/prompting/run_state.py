"""The steps of a run as its prompts show them: within a token limit, and append-only as far as possible.

Servers reuse the work on the beginning of a prompt that did not change. So an observation is sized once, when it first
appears, and stays as it is: the room for EXPECTED_STEPS steps is shared out, the spare room first to the early ones.
Where it runs out, many old observations are shortened or left out at once, so that later prompts only grow again.

A long observation is truncated to the rows or sentences most relevant to the question. A token is estimated for every
three bytes of UTF-8, rounded up, plus four for each message and each call. English has about four bytes a token and
queries about three, so a prompt is rather overestimated than underestimated.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from showhow.db.models import Step
from showhow.fewshot_library.formats.chat import step_outcome_text
from showhow.llm.types import Message, ToolSpec
from showhow.tools.read import rank_sentences
from showhow.tools.tool import EncodeFunction
from showhow.worlds.sentences import split_sentences

BYTES_PER_TOKEN = 3
MESSAGE_OVERHEAD = 4
_NOTICE_TOKENS = 16
"""Tokens reserved for the notice about what was left out."""
EXPECTED_STEPS = 30
"""A run with so many steps needs no shortening of former observations, if they fit at MIN_OBSERVATION_TOKENS."""
MIN_OBSERVATION_TOKENS = 60
"""Observations are not truncated below this length; they are left out instead."""
OMITTED_OBSERVATION = "(left out to save room)"
_STEP_OVERHEAD = 30
"""Tokens of the labels around a step, in the format with the most."""
_TYPICAL_CALL_TOKENS = 60
STATE_RESERVE = EXPECTED_STEPS * (MIN_OBSERVATION_TOKENS + _TYPICAL_CALL_TOKENS)
"""Tokens that demonstrations leave to the steps of the run, unless the window is small."""
_COMPACTED_SHARE = 0.5
"""The share of the room that is used after former observations were shortened."""
_SPREAD = 3
"""Of the spare room, an observation gets the part of a third of the expected steps."""
TruncateOutcome = Callable[[Step, int], Step]
"""Truncates the observation of a step to so many tokens."""


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """The beginning of the text, at most `max_tokens` long."""
    return text.encode()[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")


def count_message_tokens(messages: Iterable[Message]) -> int:
    """The estimated tokens of the messages with their tool calls."""
    return sum(_count_one_message(message) for message in messages)


def _count_one_message(message: Message) -> int:
    calls = sum(
        MESSAGE_OVERHEAD + estimate_tokens(call.name) + estimate_tokens(json.dumps(call.arguments, ensure_ascii=False))
        for call in message.calls
    )
    return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls


def count_tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """The estimated tokens of the tool declarations in a request."""
    return sum(
        MESSAGE_OVERHEAD
        + estimate_tokens(tool.name)
        + estimate_tokens(tool.description)
        + estimate_tokens(json.dumps(dict(tool.schema)))
        for tool in tools
    )


_CONTINUATION = re.compile(r"(?:\.\.\.|…) ")


def truncate_observation(text: str, max_tokens: int, question: str, encode: EncodeFunction) -> str:
    """The text in at most `max_tokens`: the rows or sentences nearest to the question, in their original order.

    The first row always stays, since it may hold the column names or the article's title; so do lines that report an
    earlier truncation. A last line counts what was left out.
    """
    if estimate_tokens(text) <= max_tokens:
        return text
    return _truncate_cached(text, max_tokens, question, encode)  # type: ignore[arg-type]  # every encoder is hashable


@lru_cache(maxsize=4096)
def _truncate_cached(text: str, max_tokens: int, question: str, encode: EncodeFunction) -> str:
    pieces, noun = _split_pieces(text)
    budget = max_tokens - _NOTICE_TOKENS
    if len(pieces) < 2 or estimate_tokens(pieces[0]) > budget:
        return _truncate_end(text, max_tokens)
    ranked = _rank_pieces(text, question, encode)  # type: ignore[arg-type]  # as above
    kept = _select_pieces(pieces, budget, ranked)
    omitted = len(pieces) - len(kept)
    shown = "\n".join(pieces[index] for index in sorted(kept))
    return f"{shown}\n... {omitted} more {noun}{'s' if omitted > 1 else ''} left out" if omitted else shown


def _split_pieces(text: str) -> tuple[list[str], str]:
    """The rows or sentences of a text, and the noun for one."""
    rows = [line for line in text.splitlines() if line.strip()]
    return (rows, "row") if len(rows) > 2 else (list(split_sentences(text)), "sentence")


@lru_cache(maxsize=4096)
def _rank_pieces(text: str, question: str, encode: EncodeFunction) -> tuple[int, ...]:
    """The indexes of the pieces, best first; cached, since a text may be truncated to several lengths."""
    return tuple(index for index, _ in rank_sentences(_split_pieces(text)[0], question, encode))


def _select_pieces(pieces: Sequence[str], budget: int, ranked: Sequence[int]) -> set[int]:
    kept: set[int] = set()
    required = [0, *(index for index, piece in enumerate(pieces) if index and _CONTINUATION.match(piece))]
    for index in dict.fromkeys([*required, *ranked]):
        cost = estimate_tokens(pieces[index]) + 1
        if cost <= budget:
            kept.add(index)
            budget -= cost
    return kept


def _truncate_end(text: str, max_tokens: int) -> str:
    shown = truncate_to_tokens(text, max(max_tokens - _NOTICE_TOKENS, 0))
    return f"{shown} ... {len(text) - len(shown):,} more characters left out".lstrip()


@dataclass(slots=True)
class _ShownStep:
    original: Step
    shown: Step
    call_tokens: int

    @property
    def tokens(self) -> int:
        return self.call_tokens + estimate_tokens(step_outcome_text(self.shown))


class RunState:
    """Fits the steps of one run into `room` tokens; the result depends on the steps alone, so a resumed run agrees."""

    def __init__(self, room: int, max_observation_tokens: int, truncate: TruncateOutcome) -> None:
        self._room = room
        self._max_tokens = max_observation_tokens
        self._min_tokens = min(MIN_OBSERVATION_TOKENS, max_observation_tokens)
        self._truncate = truncate
        self._steps: list[_ShownStep] = []
        self._omitted_steps = 0
        self._fits_expected_steps = True

    def fit(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the steps to show; `steps` are those of the former call and new ones behind them."""
        known = len(self._steps) + self._omitted_steps
        for step in steps[known:]:
            self._append(step)
        return (*self._omission(), *(entry.shown for entry in self._steps))

    def _append(self, step: Step) -> None:
        call_tokens = _count_call_tokens(step)
        if not self._steps and not self._omitted_steps:
            self._fits_expected_steps = EXPECTED_STEPS * (call_tokens + self._min_tokens) <= self._room
        if self._used_tokens() + call_tokens + self._min_tokens > self._room:
            self._compact(call_tokens + self._min_tokens)
        budget = self._observation_budget(call_tokens)
        self._steps.append(_ShownStep(step, self._truncate(step, budget), call_tokens))

    def _used_tokens(self) -> int:
        return sum(entry.tokens for entry in self._steps)

    def _observation_budget(self, call_tokens: int) -> int:
        free = self._room - self._used_tokens() - call_tokens
        if not self._fits_expected_steps:
            return max(min(free // 2, self._max_tokens), self._min_tokens)
        left = max(EXPECTED_STEPS - len(self._steps) - self._omitted_steps - 1, 0)
        call_sizes = [call_tokens, *(entry.call_tokens for entry in self._steps)]
        reserve = left * (sum(call_sizes) // len(call_sizes) + 1 + self._min_tokens)
        spare = max(free - self._min_tokens - reserve, 0)
        return min(self._min_tokens + spare // max(left // _SPREAD, _SPREAD), self._max_tokens)

    def _compact(self, needed: int) -> None:
        """Make room for `needed` tokens: shorten old observations, then leave them out, then leave out old steps."""
        target = min(int(self._room * _COMPACTED_SHARE), self._room - needed)
        for reduce in (self._shorten, _omit_observation):
            for index, entry in enumerate(self._steps):
                if self._used_tokens() <= target:
                    return
                self._steps[index] = replace(entry, shown=reduce(entry.original))
        if self._used_tokens() + needed <= self._room:
            return
        while len(self._steps) > 1 and self._used_tokens() > target:
            del self._steps[0]
            self._omitted_steps += 1

    def _shorten(self, step: Step) -> Step:
        return self._truncate(step, self._min_tokens)

    def _omission(self) -> list[Step]:
        if not self._omitted_steps:
            return []
        first = self._steps[0].original
        noun = "step is" if self._omitted_steps == 1 else f"{self._omitted_steps} steps are"
        thought = f"(The first {noun} left out here to save room.)"
        at = first.started_at
        return [Step(trace_id=first.trace_id, position=0, thought=thought, started_at=at, finished_at=at)]


def replace_outcome(step: Step, text: str) -> Step:
    """Return the step with this text as its observation, or as its error if it has no observation."""
    if text == step_outcome_text(step):
        return step
    return replace(step, observation=None, error=text) if step.observation is None else replace(step, observation=text)


def _omit_observation(step: Step) -> Step:
    is_longer = estimate_tokens(step_outcome_text(step)) > estimate_tokens(OMITTED_OBSERVATION)
    return replace_outcome(step, OMITTED_OBSERVATION) if is_longer else step


def _count_call_tokens(step: Step) -> int:
    """The tokens of a step without its observation, in the format that needs more."""
    texts = (step.tool or "", json.dumps(step.thought, ensure_ascii=False))
    arguments = json.dumps(step.arguments, ensure_ascii=False) if step.tool else ""
    return _STEP_OVERHEAD + sum(map(estimate_tokens, (*texts, arguments)))
