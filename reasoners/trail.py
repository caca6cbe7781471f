"""The steps of a run as the reasoner itself remembers them, and what the model may still do wrong."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from db.models import Step, now
from reasoners.calling import Call
from reasoners.origins import traced
from reasoners.reasoner import Action, ReasonerError
from reasoners.sources import source_of
from tools.tool import Outcome

IN_A_ROW = 3
IN_ALL = 6
"""Replies that cannot be run, after which a run is given up."""
LONGEST_THOUGHT = 2_000
"""Characters of a thought that are kept."""
_MOST_TIMES = 2


class Trail:
    """What was done so far, its first step standing `after` others that it does not look at.

    Steps that were begun and never finished show nothing and are passed over.
    """

    def __init__(self, question: str, taken: Sequence[Step], after: int = 0) -> None:
        self.question = question
        self.steps = [
            step for step in taken if step.tool is None or step.observation is not None or step.error is not None
        ]
        self.last_position = taken[-1].position if taken else after
        self._key = taken[0].trace_id if taken else uuid4()
        self._in_a_row = 0
        self._refused = 0

    def action(self, thought: str, call: Call, usage: dict[str, Any] | None) -> Action:
        """The call as an action, or why it is not to be run again."""
        if again := self._repeated(call):
            return Action(cut_thought(thought) or _written(call), usage=usage, refused=again)
        data = {step.position: step.data for step in self.steps}
        origins = traced(call.arguments, self.question, data)
        return Action(cut_thought(thought), call.tool, call.arguments, origins, usage)

    def _repeated(self, call: Call) -> str | None:
        same = [step for step in self.steps if (step.tool, step.arguments) == (call.tool, call.arguments)]
        seen = next((step for step in same if step.observation is not None), None)
        if seen is not None:
            return (
                f"This very call was made in step {seen.position}, and what it returned stands there. "
                f"Do something else, or give the answer."
            )
        if len(same) >= _MOST_TIMES:
            return (
                f"This call failed {len(same)} times already. Use other arguments or another tool, or give the answer."
            )
        return None

    @property
    def source(self) -> str | None:
        """What was seen last: text or graph; the model itself where nothing was, None of other people's tools."""
        seen = [step.tool for step in self.steps if step.tool is not None and step.observation is not None]
        return source_of(seen[-1]) if seen else "model"

    def add(self, action: Action, outcome: Outcome | None) -> None:
        """Remember a step with what came of it; ReasonerError when too many could not be run."""
        found = outcome.observation if outcome else None
        self.last_position += 1
        self.steps.append(
            Step(
                trace_id=self._key,
                position=self.last_position,
                thought=action.thought,
                tool=action.tool,
                arguments=action.arguments,
                observation=found.text if found else None,
                data=found.data if found else None,
                error=action.refused or (outcome.error if outcome else None),
                finished_at=now(),
            )
        )
        self._count(action.refused)

    def _count(self, refused: str | None) -> None:
        if refused is None:
            self._in_a_row = 0
            return
        self._in_a_row += 1
        self._refused += 1
        if self._in_a_row >= IN_A_ROW or self._refused >= IN_ALL:
            often = f"{self._in_a_row} in a row" if self._in_a_row >= IN_A_ROW else f"{self._refused} in all"
            raise ReasonerError(
                f"The model wrote replies that cannot be run, {often}, the last because: {refused} "
                f"Try another model, or fix the trace from the step before."
            )


def cut_thought(thought: str) -> str:
    """The thought, of a very long one the beginning."""
    left = len(thought) - LONGEST_THOUGHT
    return thought if left <= 0 else f"{thought[:LONGEST_THOUGHT]} ... {left:,} more characters left out"


def _written(call: Call) -> str:
    return f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})"
