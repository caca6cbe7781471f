"""A real language model, small and served by others, behind every reasoner: speed, and what its replies are worth.

One question each, within limits that hold a run to a minute on a quiet machine. A reply parses at once, after it was
asked for again, or never; agents are told what is wrong with a message, so that each of theirs counts alone.
"""

import time
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
LIMITS = RunLimits(steps=8, seconds=300.0, model_calls=6)
QUESTION = "Who is the mother of the friend of Nobody Atall?"


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the world is generated
    """Seconds of a question, tokens a second, and replies that parse, for each reasoner and prompt format."""
    generate_world(home / "worlds", "town", WORLD_OPTIONS)
    context = ToolContext(open_world(home / "worlds", "town"), _encode_nothing)
    with serving(home) as model:
        for entry in REASONERS.values():
            for form in ("chat", "text") if "form" in entry.option_names else ("",):
                if entry.needs_model:
                    yield from _measure(model, context, entry.name, form)


def _encode_nothing(texts: Sequence[str]) -> np.ndarray:
    return np.zeros((len(texts), 1), dtype=np.float32)


def _measure(model: RealModel, context: ToolContext, method: str, form: str) -> Iterator[dict[str, Any]]:
    chat = build_chat_client(model.profile())
    task = Task(QUESTION, replace(context, chat=chat), available_tools(context.world))
    recorder, before = MemoryRecorder(), model.count_requests()
    started = time.perf_counter()
    outcome = run_reasoner(
        make_reasoner(method, {"form": form} if form else {}), task, recorder, RunControl(LIMITS, concurrency=1)
    )
    seconds = time.perf_counter() - started
    sent = model.count_requests() - before
    name = f"{method}, {form}" if form else method
    ending = " ".join(
        f"{outcome.ending}: {outcome.failure or (outcome.answers and outcome.answers.final_answer)}".split()
    )
    size, written = f"{sent} requests", outcome.usage.get("output_tokens") or 0
    counted = outcome.usage.get("calls", 0)
    note = ending if counted == sent else f"{ending}; {sent - counted} of the requests under way or not counted"
    yield {"name": f"real model: {name}", "size": size, "value": round(seconds, 1), "unit": "s", "note": note}
    yield {"name": f"real model: {name}", "size": size, "value": round(written / seconds, 2), "unit": "tokens/s"}
    replies = Counter(verdict for step in recorder.steps for verdict in _judge_step(step))
    # The last message of an agent is no step.
    replies["at once"] += bool(form) and outcome.answers is not None
    for verdict in ("at once", "after repair", "never"):
        share = replies[verdict] / max(1, replies.total())
        yield {
            "name": f"real model: {name}",
            "size": f"{replies.total()} replies",
            "value": round(share, 2),
            "unit": f"parse {verdict}",
        }


def _judge_step(step: Step) -> Iterator[str]:
    """When the reply of a step could be read; nothing for a step without a reply."""
    data = step.data or {}
    if "calls" in data and "reply" in data:
        has_reply = data["reply"] is not None and "fallback" not in data
        yield "never" if not has_reply else "after repair" if data.get("rejected") else "at once"
    elif "thought" in step.usage:
        yield "at once" if step.tool is not None else "never"
