"""Runs an agent whose process is killed beside each reply of its model; each time another process goes on.

`python killed_model_run.py URL TRACE MODEL_URL WHEN`: WHEN is "stored" for kills between a reply stored and used, or
"lost" for kills before it is stored. Prints the number of kills.
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import showhow.llm.langchain_model  # noqa: F401 - loaded once, before the processes fork
from showhow.db.database import Database
from showhow.db.run_spec import RunLimits
from showhow.db.runs import runs
from showhow.llm.client import build_chat_client
from showhow.llm.types import ChatReply, Message, ModelProfile
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.runs.model_call_recorder import StoreModelCallRecorder
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.tool import Observation, ToolContext
from tests.reasoners.agents import ALONE
from tests.reasoners.scripted import NOWHERE, tool_of


class DyingRecorder(StoreModelCallRecorder):
    """Kills its process beside the first reply that it stores."""

    when = ""

    def complete(self, handle: UUID, reply: ChatReply) -> None:
        if self.when == "lost":
            os.kill(os.getpid(), signal.SIGKILL)
        super().complete(handle, reply)
        if self.when == "stored":
            os.kill(os.getpid(), signal.SIGKILL)


def lookup(context: ToolContext, name: Annotated[str, "whom"]) -> Observation:
    """Look up a person."""
    assert context.chat is not None
    return Observation(context.chat.ask([Message("user", f"What of {name}?")]).text, {"value": name})


def go_on(url: str, trace_id: UUID, model_url: str, when: str) -> None:
    """Run until the process is killed, or to the end."""
    store = Database(url)
    with store.begin() as session:
        trace = runs.reopen_run_trace(session, trace_id)
    steps = StoreRecorder(store, trace)
    recorder = DyingRecorder(store, steps)
    recorder.when = when
    chat = build_chat_client(ModelProfile("scripted", model_url)).recording(recorder)
    task = Task("Who built the quay?", replace(NOWHERE, chat=chat), [tool_of(lookup)])
    run_reasoner(HumanIQ(ALONE), task, steps, RunControl(RunLimits(steps=20), on_text=str.strip))


def main(url: str, trace_id: UUID, model_url: str, when: str) -> None:
    """Run one process after the other until one is not killed."""
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            # With every reply lost no process would come to an end; the others get so many deaths as replies.
            go_on(url, trace_id, model_url, when if when == "stored" or kills % 2 == 0 else "stored")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        kills += 1
    print(kills)  # noqa: T201 - for the test


if __name__ == "__main__":
    main(sys.argv[1], UUID(sys.argv[2]), sys.argv[3], sys.argv[4])
