"""Thirty sessions that record, ask and generate worlds at once for twenty minutes; SOAK_MINUTES sets another time."""

import os
import random
import statistics
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from showhow.benchmarks.servers import SHOWHOW_COMMAND, run_app_server, server_environment
from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.traces.traces import iterate_traces
from showhow.fiction.questions.question_file import read_question_rows
from showhow.worlds.folder import list_world_names
from tests.browser.session import BrowserSession, SessionError, open_session

PROJECT_NAME = "Fictional people"
RECORDERS, ASKERS, GENERATORS = 20, 8, 2
STEPS_PER_TRACE = 8
PAUSE_SECONDS = 5.0
SAMPLE_SECONDS = 5.0


@dataclass(slots=True)
class SoakVisitor(ABC):
    """A session of one kind: what the server acknowledged to it, and its errors."""

    name: str
    url: str
    acknowledged: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run_until(self, until: float) -> None:
        """Act until that moment of the monotonic clock; a session that fails is opened again and the error kept."""
        generator = random.Random(self.name)  # noqa: S311 - spreads the load, not used as a secret
        while time.monotonic() < until:
            try:
                self._visit(until, generator)
            except SessionError as error:
                self.errors.append(str(error))
                time.sleep(PAUSE_SECONDS)

    @contextmanager
    def _open_page(self, page: str, **parameters: str) -> Iterator[BrowserSession]:
        with open_session(self.url, page, {"you": self.name, **parameters}) as session:
            # The page asks a browser that is new to it whether the person of the link is the visitor.
            if "confirm_person" in session.widgets:
                session.rerun(click="confirm_person")
            yield session

    @abstractmethod
    def _visit(self, until: float, generator: random.Random) -> None:
        """Open a page and act on it until that moment; SessionError if an act was not acknowledged."""


class Recorder(SoakVisitor):
    """An annotator: steps, then an answer, then the next question."""

    def _visit(self, until: float, generator: random.Random) -> None:
        with self._open_page("", project=PROJECT_NAME) as page:
            while time.monotonic() < until:
                for number in range(STEPS_PER_TRACE):
                    text = f"{self.name} wants to know, {len(self.acknowledged)}"
                    page.rerun({"_thought": text, "_arg_wikisearch_query": f"town number {number}"}, click="run")
                    if f"**Step {number + 2}**" not in page.texts:
                        raise SessionError(f"the step was not acknowledged: {' | '.join(page.texts)[:300]}")
                    self.acknowledged.append(text)
                    time.sleep(generator.uniform(0.5, 1.5) * PAUSE_SECONDS)
                page.rerun(click="finish")
                page.rerun({"_final_answer": "a town"}, click="submit")


class Asker(SoakVisitor):
    """A researcher: asks the questions of the default world by replay and waits for each answer."""

    questions: tuple[str, ...] = ()

    def _visit(self, until: float, generator: random.Random) -> None:
        with self._open_page("ask") as page:
            while time.monotonic() < until:
                question = generator.choice(self.questions)
                page.rerun({"ask_question": question}, click="ask")
                while any(known.endswith("stop") for known in page.widgets):
                    time.sleep(1)
                    page.rerun()
                self.acknowledged.append(question)
                time.sleep(generator.uniform(0.5, 1.5) * PAUSE_SECONDS)


class Generator(SoakVisitor):
    """An administrator: generates worlds of a thousand people one after another."""

    def _visit(self, until: float, generator: random.Random) -> None:
        with self._open_page("worlds") as page:
            while time.monotonic() < until:
                name = f"{self.name}-{len(self.acknowledged)}"
                page.rerun(click="generate")
                page.rerun({"generate_name": name}, click="generate_now")
                self.acknowledged.append(name)
                time.sleep(generator.uniform(4, 8) * PAUSE_SECONDS)
                page.rerun()


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory in MB and open descriptors of the server's processes, a number of seconds after the start."""

    seconds: float
    server_mb: float
    children_mb: float
    descriptors: int
    threads: int


def run_benchmark(home: Path, _data: Path | None) -> Iterator[dict[str, Any]]:
    """Memory and descriptors over time, acknowledged acts, errors, and what was lost."""
    minutes = float(os.environ.get("SOAK_MINUTES", "20"))
    subprocess.run([SHOWHOW_COMMAND, "setup"], env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    with database.begin() as session:
        for number in range(GENERATORS):
            users.register_user(session, f"generator{number}")
            users.set_roles(session, f"generator{number}", users.ROLES)
    Asker.questions = tuple(row["text"] for row in read_question_rows(home / "worlds" / "default"))
    with run_app_server(home) as server:
        visitors: list[SoakVisitor] = [
            *(Recorder(f"recorder{number}", server.url) for number in range(RECORDERS)),
            *(Asker(f"asker{number}", server.url) for number in range(ASKERS)),
            *(Generator(f"generator{number}", server.url) for number in range(GENERATORS)),
        ]
        samples = _run_visitors(visitors, server.process_id, minutes * 60)
        time.sleep(60)
        samples.append(_take_sample(psutil.Process(server.process_id), samples[-1].seconds + 60))
    yield from _soak_results(visitors, samples, database, home, f"{len(visitors)} sessions, {minutes:g} min")


def _run_visitors(visitors: list[SoakVisitor], process_id: int, seconds: float) -> list[Sample]:
    started = time.monotonic()
    threads = [threading.Thread(target=visitor.run_until, args=(started + seconds,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    process = psutil.Process(process_id)
    samples = []
    while any(thread.is_alive() for thread in threads):
        samples.append(_take_sample(process, time.monotonic() - started))
        time.sleep(SAMPLE_SECONDS)
    return samples


def _take_sample(process: psutil.Process, seconds: float) -> Sample:
    children = 0
    for child in process.children(recursive=True):
        try:
            children += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return Sample(seconds, process.memory_info().rss / 1e6, children / 1e6, process.num_fds(), process.num_threads())


def _soak_results(
    visitors: list[SoakVisitor], samples: list[Sample], database: Database, home: Path, size: str
) -> Iterator[dict[str, Any]]:
    running, at_rest = samples[:-1], samples[-1]
    fifth = max(1, len(running) // 5)
    for name, field_name, unit in (
        ("server_memory", "server_mb", "MB"),
        ("descriptors", "descriptors", "descriptors"),
        ("threads", "threads", "threads"),
    ):
        by_fifth = [
            round(statistics.median(getattr(sample, field_name) for sample in running[start : start + fifth]))
            for start in range(0, fifth * 5, fifth)
        ]
        yield {
            "name": f"soak_{name}",
            "size": size,
            "value": by_fifth[-1],
            "unit": unit,
            "note": f"median of each fifth {by_fifth}; a minute after the last act {getattr(at_rest, field_name):.0f}",
        }
    yield from _lost_acts(visitors, database, home, size)


def _lost_acts(visitors: list[SoakVisitor], database: Database, home: Path, size: str) -> Iterator[dict[str, Any]]:
    errors = [error for visitor in visitors for error in visitor.errors]
    yield {"name": "soak_errors", "size": size, "value": len(errors), "unit": "errors", "note": "; ".join(errors[:3])}
    by_kind = {
        kind: [text for visitor in visitors if isinstance(visitor, kind) for text in visitor.acknowledged]
        for kind in (Recorder, Asker, Generator)
    }
    with database.read() as session:
        records = list(iterate_traces(session))
    stored = [step.thought for record in records for step in record.steps]
    asked = [record.question.text for record in records if record.trace.run_id is not None]
    worlds = set(list_world_names(home / "worlds"))
    yield {
        "name": "soak_steps_lost",
        "size": size,
        "value": sum(stored.count(text) != 1 for text in by_kind[Recorder]),
        "unit": "steps",
        "note": f"of {len(by_kind[Recorder])} acknowledged",
    }
    yield {
        "name": "soak_asks_lost",
        "size": size,
        "value": (Counter(by_kind[Asker]) - Counter(asked)).total(),
        "unit": "asks",
        "note": f"of {len(by_kind[Asker])}; endings " + ", ".join(sorted({str(r.trace.ending) for r in records})),
    }
    yield {
        "name": "soak_worlds_lost",
        "size": size,
        "value": len(set(by_kind[Generator]) - worlds),
        "unit": "worlds",
        "note": f"of {len(by_kind[Generator])}",
    }
