"""A real language model, small and served by others, behind every reasoner: speed, and what its replies are worth.

One question each, within a minute, so that all of them take less than half an hour on any machine. A reply parses at
once, after it was asked for again, or never; agents are told what is wrong with a message, so that each counts alone.
"""

import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.llm.client import build_chat_client
from showhow.reasoners.base import Task
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world
from tests.servers.real_model import RealModel, serving

WORLD_OPTIONS = GenerationOptions(people=20, seed=31, per_template=1)
LIMITS = RunLimits(steps=8, seconds=50.0, model_calls=4)
QUESTION = "Who is the mother of the friend of Nobody Atall?"
VERDICTS = ("at once", "after repair", "never")


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the world is generated
    """Seconds of a question, and in the note tokens a second and the replies that parse, for each reasoner and form."""
    generate_world(home / "worlds", "town", WORLD_OPTIONS)
    context = ToolContext(open_world(home / "worlds", "town"), _encode_nothing)
    with serving(home) as model:
        for method, form in list_ways():
            yield _measure(model, context, method, form)


def list_ways() -> list[tuple[str, str]]:
    """The reasoners that ask a model, each with its prompt formats; "" for one that has a single one."""
    return [
        (entry.name, form)
        for entry in REASONERS.values()
        if entry.needs_model
        for form in (("chat", "text") if "form" in entry.option_names else ("",))
    ]


def _encode_nothing(texts: Sequence[str]) -> np.ndarray:
    return np.zeros((len(texts), 1), dtype=np.float32)


def _measure(model: RealModel, context: ToolContext, method: str, form: str) -> dict[str, Any]:
    chat = build_chat_client(model.profile())
    task = Task(QUESTION, replace(context, chat=chat), available_tools(context.world))
    recorder, before = MemoryRecorder(), model.count_requests()
    started = time.perf_counter()
    has_answer, usage = False, dict[str, Any]()
    try:
        outcome = run_reasoner(
            make_reasoner(method, {"form": form} if form else {}), task, recorder, RunControl(LIMITS, concurrency=1)
        )
    # A fault in one method leaves the others to be measured; its line says what it was.
    except Exception as fault:  # noqa: BLE001
        place = traceback.extract_tb(fault.__traceback__)[-1]
        ending = f"fault: {type(fault).__name__} at {Path(place.filename).name}:{place.lineno}: {fault}"
    else:
        has_answer, usage = outcome.answers is not None, dict(outcome.usage)
        ending = f"{outcome.ending}: {outcome.failure or (outcome.answers and outcome.answers.final_answer)}"
    seconds = time.perf_counter() - started
    sent = model.count_requests() - before
    notes = [f"{(usage.get('output_tokens') or 0) / seconds:.1f} tokens/s"]
    replies = Counter(verdict for step in recorder.steps for verdict in _judge_step(step))
    # The last message of an agent is no step.
    replies["at once"] += bool(form) and has_answer
    shares = ", ".join(f"{replies[verdict] / max(1, replies.total()):.0%} {verdict}" for verdict in VERDICTS)
    notes.append(f"{replies.total()} replies parse {shares}" if replies.total() else "no reply in time")
    if uncounted := sent - usage.get("calls", 0):
        notes.append(f"{uncounted} of the requests under way or not counted")
    return {
        "name": f"real model: {method}, {form}" if form else f"real model: {method}",
        "size": f"{sent} requests",
        "value": round(seconds, 1),
        "unit": "s",
        "note": "; ".join([*notes, " ".join(ending.split())]),
    }


def _judge_step(step: Step) -> Iterator[str]:
    """When the reply of a step could be read; nothing for a step without a reply."""
    data = step.data or {}
    if "calls" in data and "reply" in data:
        has_reply = data["reply"] is not None and "fallback" not in data
        yield "never" if not has_reply else "after repair" if data.get("rejected") else "at once"
    elif "thought" in step.usage:
        yield "at once" if step.tool is not None else "never"
