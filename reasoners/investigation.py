"""Thought, action and observation, again and again, until the model gives an answer."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from db.models import Step
from db.recording import Answers
from reasoners.conversation import MOST_CALLS, Conversation
from reasoners.decision import Decision
from reasoners.ending import answers_in
from reasoners.hearing import asked
from reasoners.pipeline import Stage, stage
from reasoners.prompting import Prompting
from reasoners.react import ReAct
from reasoners.reasoner import Action, Saying, Task
from reasoners.setup import Setup
from reasoners.trail import Trail, cut_thought
from tools.chat import Chat, Message, Reply
from tools.chat_errors import ChatCut, ChatEmpty, ChatRejected
from tools.tool import Outcome
from tools.usage import Usage

_NO_CALLS, _NO_STOP = "refuses tools", "refuses stop sequences"
"""Learnt of a server that named them when it refused a request, and that took one without."""
_TOOLS_NAMED, _STOP_NAMED = re.compile(r"\b(?:tool|function)", re.IGNORECASE), re.compile(r"\bstop\b", re.IGNORECASE)
_FIRST = f"Only the first {MOST_CALLS} calls of a reply are run;"
_AGAIN = "Read what they returned, then make those that are still needed."


@dataclass(frozen=True, slots=True)
class Finding:
    """What an investigation came to; the final answer is empty where it found none."""

    answers: Answers
    steps: Sequence[Step]
    usage: Usage
    """Of the call that ended it."""
    form: str
    demonstrations: int
    """So many had room in the last prompt."""


class Investigation:
    """One run of the loop, which begins `after` so many steps of others."""

    def __init__(self, task: Task, setup: Setup, chat: Chat, *, stream: bool, after: int = 0) -> None:
        self._task = task
        self._setup = setup
        self._chat = chat
        self._stream = stream
        self._trail = Trail(task.question, task.taken, after)
        as_text = setup.form == "text" or (setup.form == "auto" and _NO_CALLS in chat.learnt)
        self._prompting = Prompting(ReAct() if as_text else Conversation(), task, setup)

    @property
    def last_position(self) -> int:
        """Of the last step there is."""
        return self._trail.last_position

    def prompt(self) -> Sequence[Message]:
        """What the model would be sent now."""
        return self._messages(self._stage())

    def run(self) -> Generator[Action | Saying, Outcome | None, Finding]:
        """Act until there is an answer."""
        while True:
            now = self._stage()
            decision, usage = yield from self._decided(now)
            decision = now.checked(decision)
            if decision.ending is not None:
                last, sources = self._trail.source, self._setup.sources
                answers = answers_in(decision.ending, decision.thought, last, sources)
                prompting = self._prompting
                return Finding(answers, self._trail.steps, usage, prompting.form.name, prompting.shown)
            if decision.refused is not None:
                refused = Action(cut_thought(decision.thought), usage=usage.to_json(), refused=decision.refused)
                self._trail.add(refused, (yield refused))
            for place, call in enumerate(decision.calls):
                thought = decision.thought if place == 0 else ""
                action = self._trail.action(thought, call, usage.to_json() if place == 0 else None)
                self._trail.add(action, (yield action))
            if decision.left_out:
                refused = Action("", refused=f"{_FIRST} {decision.left_out} more were left out. {_AGAIN}")
                self._trail.add(refused, (yield refused))

    def _decided(self, now: Stage) -> Generator[Saying, None, tuple[Decision, Usage]]:
        try:
            reply = yield from self._asked(now)
        except (ChatCut, ChatEmpty) as broken:
            return Decision("", refused=str(broken)), broken.usage or Usage()
        return self._prompting.form.read(reply, self._task.question, now.tools), reply.usage

    def _asked(self, now: Stage) -> Generator[Saying, None, Reply]:
        """The reply, asked for without what the server refuses."""
        learnt: set[str] = set()
        while True:
            form = self._prompting.form
            stop = () if _NO_STOP in learnt | self._chat.learnt else form.stop
            tools = form.offers(now.tools)
            try:
                reply = yield from asked(self._chat, self._messages(now), stop, tools, stream=self._stream)
            except ChatRejected as refused:
                learnt |= self._without(refused, stop)
            else:
                self._chat.learnt.update(learnt)
                return reply

    def _without(self, refused: ChatRejected, stop: Sequence[str]) -> set[str]:
        """Leave out what the server may have meant, and give what it has named; the refusal where that is nothing."""
        if self._setup.form == "auto" and self._prompting.form.name != ReAct.name:
            self._prompting = Prompting(ReAct(), self._task, self._setup)
            return {_NO_CALLS} if _TOOLS_NAMED.search(str(refused)) else set()
        if stop and _STOP_NAMED.search(str(refused)):
            return {_NO_STOP}
        raise refused

    def _stage(self) -> Stage:
        return stage(self._setup.pipeline, self._task.tools, self._trail.steps)

    def _messages(self, now: Stage) -> list[Message]:
        return self._prompting.messages(self._trail.steps, now.tools, now.cue)
