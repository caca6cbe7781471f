"""A verb at work beside the server: how far it is, a button that stops it, and the page drawn anew when it is done.

Long work of the command line beside the server: each a process of its own, shown while it runs, ended by a stop.
Worlds in the making: how far each is, and a button that stops it.
The options of a verb as fields of a form, so that the page offers what the command line does, in the same words.
"""

import atexit
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st
from typer.models import OptionInfo

from app.widgets.plain_text import escape_markdown
from app.widgets.url_state import go_to_world
from worlds.folder import WorldError

# A server that was started in the background ignores interrupts, and would hand that down.
_ENTRY_POINT = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from app.cli import main; main()"
)
_PROJECT_ROOT = Path(__file__).resolve().parents[2]
_GRACE_SECONDS = 10.0
"""Seconds that a stopped process has to clean up."""
_FRACTION_PATTERN = re.compile(r"(\d[\d,]*) (?:of|/) (\d[\d,]*)")
_PERCENT_PATTERN = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass
class Job:
    """One verb at work on a world; `said` is its last line."""

    world: str
    activity: str
    """Generating, importing ..."""
    process: subprocess.Popen[str]
    scratch_folder: Path | None = None
    """A folder that is removed when the work is over."""
    last_message: str = ""
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    stopping: bool = False

    @property
    def state(self) -> str:
        """running, done, stopped or failed."""
        if self.ended_at is None:
            return "running"
        if self.process.returncode == 0:
            return "done"
        return "stopped" if self.stopping else "failed"

    @property
    def seconds(self) -> float:
        """How long it has been or was at work."""
        return (self.ended_at or time.monotonic()) - self.started_at

    @property
    def progress(self) -> float | None:
        """How much is done, from 0 to 1, if its last line says so."""
        if percent := _PERCENT_PATTERN.search(self.last_message):
            return min(1.0, float(percent[1]) / 100)
        if fraction := _FRACTION_PATTERN.search(self.last_message):
            done, whole = (int(number.replace(",", "")) for number in fraction.groups())
            return min(1.0, done / whole) if whole else None
        return None

    def stop(self) -> None:
        """Interrupt it as Ctrl+C does, so that nothing half made stays; one that does not end is killed."""
        if not self.stopping and self.ended_at is None:
            self.stopping = True
            self._send_signal(signal.SIGINT)
            Thread(target=self._kill_after_grace, daemon=True).start()

    def read_output(self) -> None:
        """Read what it says until it ends."""
        assert self.process.stderr is not None  # noqa: S101 - tells the type checker that it is a pipe
        with self.process.stderr as lines:
            for line in lines:
                self.last_message = line.strip().removeprefix("showhow: ") or self.last_message
        self.process.wait()
        if self.scratch_folder is not None:
            shutil.rmtree(self.scratch_folder, ignore_errors=True)
        self.ended_at = time.monotonic()

    def _kill_after_grace(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_SECONDS)
            return
        self._send_signal(signal.SIGKILL)

    def _send_signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)


class JobRegistry:
    """The jobs of this server, for whoever looks at its pages."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        atexit.register(self.stop_all)

    def start(self, world: str, doing: str, arguments: Sequence[str], scratch: Path | None = None) -> Job:
        """Run `showhow` with the arguments; WorldError when that world is being worked on already."""
        with self._lock:
            known = self._jobs.get(world)
            if known is not None and known.state == "running":
                raise WorldError(f"{world!r} is being made already; wait for it, stop it, or choose another name.")
            process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                [sys.executable, "-c", _ENTRY_POINT, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(_PROJECT_ROOT)},
            )
            job = self._jobs[world] = Job(world, doing, process, scratch)
        Thread(target=job.read_output, daemon=True).start()
        return job

    def all(self) -> list[Job]:
        """Every job that is at work or was not dismissed yet, the latest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.started_at)

    def dismiss(self, job: Job) -> None:
        """Forget a job that is over."""
        with self._lock:
            if self._jobs.get(job.world) is job and job.state != "running":
                del self._jobs[job.world]

    def stop_all(self) -> None:
        """End every process, as when the server ends."""
        for job in self.all():
            job.stop()
        for job in self.all():
            with suppress(subprocess.TimeoutExpired):
                job.process.wait(_GRACE_SECONDS)


@cache
def get_jobs() -> JobRegistry:
    """The jobs of this server."""
    return JobRegistry()


def show_jobs(*, stoppable: bool) -> None:
    """Draw them, anew every second while one is at work; the whole page when one has ended."""
    at_work = any(job.state == "running" for job in get_jobs().all())
    st.fragment(_show_all_jobs, run_every=1.0 if at_work else None)(at_work=at_work, stoppable=stoppable)


def _show_all_jobs(*, at_work: bool, stoppable: bool) -> None:
    found = get_jobs().all()
    if at_work and not any(job.state == "running" for job in found):
        # What it made is in the list now.
        st.rerun()
    for job in found:
        with st.container(key=f"job_{job.world}", border=True, gap="small"):
            if job.state == "running":
                _show_running_job(job, stoppable=stoppable)
            else:
                _show_finished_job(job)


def _show_running_job(job: Job, *, stoppable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        ending = " · stopping …" if job.stopping else ""
        st.markdown(
            f"**{job.activity} {escape_markdown(job.world)}** · {_format_duration(job.seconds)}{ending}",
            width="stretch",
        )
        if stoppable:
            st.button("Stop", key=f"stop_{job.world}", on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
    said = escape_markdown(job.last_message or "starting …")
    if job.progress is None:
        st.caption(said)
    else:
        st.progress(job.progress, text=said)


def _show_finished_job(job: Job) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        name, took = escape_markdown(job.world), _format_duration(job.seconds)
        if job.state == "done":
            st.markdown(f":material/check: **{name}** is there, after {took}.", width="stretch")
            if st.button("Open", key=f"see_{job.world}", type="primary"):
                get_jobs().dismiss(job)
                go_to_world(job.world)
                st.rerun()
        elif job.state == "stopped":
            st.markdown(f":material/stop: **{name}** was stopped after {took}; nothing of it is left.", width="stretch")
        else:
            why = escape_markdown(job.last_message or "the process ended without a word")
            st.markdown(f":red[:material/error:] **{name}** was not made: {why}", width="stretch")
        st.button("Dismiss", key=f"dismiss_{job.world}", on_click=get_jobs().dismiss, args=(job,), type="tertiary")


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


OptionValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class VerbOption:
    """One option: `lowest` and `highest` bound a number where the verb bounds it."""

    name: str
    kind: type
    default: Any
    help: str
    flag: str
    minimum: float | None = None
    maximum: float | None = None


def read_verb_options(verb: Callable[..., None]) -> dict[str, VerbOption]:
    """The options of the verb by name, in its order."""
    hints = get_type_hints(verb, include_extras=True)
    found = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        option = next((note for note in notes if isinstance(note, OptionInfo)), None)
        if option is None:
            continue
        kind = next((one for one in get_args(base) if one is not NoneType), base)
        found[name] = VerbOption(
            name, kind, parameter.default, option.help or "", _option_flag(name, option), option.min, option.max
        )
    return found


def _option_flag(name: str, option: OptionInfo) -> str:
    # In an annotation Typer keeps the first of the names that are given as the default.
    named = (option.default, *(option.param_decls or ()))
    return next((one for one in named if isinstance(one, str) and one.startswith("--")), f"--{name.replace('_', '-')}")


def show_option_field(field: VerbOption, key: str, label: str, choices: Sequence[str] = ()) -> OptionValue:
    """Draw the field with its explanation below and give its value; a text with choices may be written freely too."""
    given = _show_option_widget(field, key, label, choices)
    st.caption(escape_markdown(field.help))
    return given


def _show_option_widget(field: VerbOption, key: str, label: str, choices: Sequence[str]) -> OptionValue:
    # A browser's numbers end before the largest seed does.
    bounds = (field.minimum, field.maximum)
    lowest, highest = (None if limit is None or abs(limit) > 2**53 else limit for limit in bounds)
    if field.kind is bool:
        return st.checkbox(label, value=bool(field.default), key=key)
    if field.kind is int:
        low, high = (None if limit is None else int(limit) for limit in (lowest, highest))
        return st.number_input(label, low, high, int(field.default), step=1, key=key)
    if field.kind is float:
        least, most = (None if limit is None else float(limit) for limit in (lowest, highest))
        return st.number_input(label, least, most, float(field.default), step=0.1, key=key)
    if choices:
        known = list(dict.fromkeys((str(field.default), *choices)))
        return st.selectbox(label, known, key=key, accept_new_options=True)
    return st.text_input(label, value=str(field.default or ""), key=key)


def build_command_arguments(given: Mapping[str, OptionValue], known: Mapping[str, VerbOption]) -> list[str]:
    """The values as words of a command line; what is as the verb has it by itself is left out."""
    words = []
    for name, value in given.items():
        field = known[name]
        if value == field.default:
            continue
        # Joined, so that a value that begins with a dash is not taken for an option.
        words.append(field.flag if field.kind is bool else f"{field.flag}={value}")
    return words


@dataclass(frozen=True, slots=True)
class JobKind:
    """What a job does, in the words of its panel."""

    key: str
    activity: str
    """Counting ..."""
    stopped_message: str
    """The counting of ... was stopped, and what is left of it."""
    failed_message: str
    """... was not counted"""
    waiting_message: str
    """What is said until the verb says something itself."""


_LOADING_MESSAGE = "the model that compares texts loads, some 5 seconds …"
USAGE_JOB = JobKind(
    "usage", "Counting", "The counting of {} was stopped; nothing of it is kept.", "was not counted", _LOADING_MESSAGE
)
DRIFT_JOB = JobKind(
    "drift",
    "Running again",
    "Running {} again was stopped; the former report stays.",
    "was not run again",
    _LOADING_MESSAGE,
)
VERIFICATION_JOB = JobKind(
    "verify",
    "Verifying",
    "The verification of {} was stopped; it can be gone on with.",
    "was not verified to the end",
    _LOADING_MESSAGE,
)


@cache
def _get_jobs(_kind: str) -> JobRegistry:
    return JobRegistry()


def start_verb_job(kind: JobKind, name: str, words: list[str]) -> None:
    """Begin with it, unless somebody else has meanwhile."""
    with suppress(WorldError):
        _get_jobs(kind.key).start(name, kind.activity, words)


def show_verb_job(kind: JobKind, name: str) -> bool:
    """Draw the job of that name, anew every second while it is at work; whether it is at work."""
    job = next((job for job in _get_jobs(kind.key).all() if job.world == name), None)
    if job is None:
        return False
    running = job.state == "running"
    st.fragment(_show_job, run_every=1.0 if running else None)(kind, job, running=running)
    return running


def _show_job(kind: JobKind, job: Job, *, running: bool) -> None:
    if job.state == "done":
        _get_jobs(kind.key).dismiss(job)
    if job.state == "done" or (running and job.state != "running"):
        # What it made is kept, and drawn now; and all of the page shows that it is no longer at work.
        st.rerun()
    with st.container(key=f"{kind.key}_job", border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(_format_title(kind, job), width="stretch")
            if job.state == "running":
                stop = f"stop_{kind.key}"
                st.button("Stop", key=stop, on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
            elif st.button("Dismiss", key=f"dismiss_{kind.key}", type="tertiary"):
                _get_jobs(kind.key).dismiss(job)
                st.rerun()
        if job.state == "running":
            st.progress(job.progress or 0.0, text=escape_markdown(job.last_message or kind.waiting_message))


def _format_title(kind: JobKind, job: Job) -> str:
    name = escape_markdown(job.world)
    match job.state:
        case "running":
            return f"**{kind.activity} {name}** · {job.seconds:.0f} s" + (" · stopping …" if job.stopping else "")
        case "stopped":
            return f":material/stop: {kind.stopped_message.format(f'**{name}**')}"
        case _:
            why = escape_markdown(job.last_message or "the process ended without a word")
            return f":red[:material/error:] **{name}** {kind.failed_message}: {why}"
