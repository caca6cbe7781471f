"""The panel of background jobs (app/jobs.py): progress, a button that stops the job, and the way it ended."""

from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from showhow.app.jobs import Job, JobError
from showhow.app.services import jobs
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.url_state import go_to_world
from showhow.db.database import Database, StoreError
from showhow.db.people.users import ADMIN, REVIEWER, authorize, has_acting_role
from showhow.worlds.folder import ScratchFolder

WORLD_JOB = "world"
"""The kind of jobs that generate or import a world; the job's name is that of the world."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job that shows its result on the page that started it, with the texts of its panel."""

    key: str
    activity: str
    """A verb form, such as Counting."""
    stopped_message: str
    """A sentence with {} for the name."""
    failed_message: str
    """The predicate between the name and the error."""
    waiting_message: str
    """The text until the verb reports progress."""
    roles: tuple[str, ...] = (REVIEWER, ADMIN)
    """Who may start and stop it; empty for everybody with a role."""
    killed_message: str = "The process of {} was killed; start it again."
    """A sentence with {} for the name, where it could not clean up."""


_RESULT_KEY = "import_result"
"""Session key of the result of the last import, until it is shown."""
_LOADING_MESSAGE = "Loading the encoder …"
USAGE_JOB = JobKind(
    "usage",
    "Counting",
    "The count of {} was stopped; its results are not stored.",
    "was not counted",
    _LOADING_MESSAGE,
    roles=(),
)
DRIFT_JOB = JobKind(
    "drift",
    "Running again",
    "Running {} again was stopped; the previous report is still stored.",
    "was not run again",
    _LOADING_MESSAGE,
)
REPEAT_JOB = JobKind(
    "repeat",
    "Trying",
    "Trying {} was stopped; what was found out so far is kept.",
    "was not tried",
    "Starting …",
    roles=(),
)
VERIFICATION_JOB = JobKind(
    "verification",
    "Verifying",
    "The verification of {} was stopped; it can be continued.",
    "was not completely verified",
    _LOADING_MESSAGE,
)
SCORING_JOB = JobKind(
    "scoring",
    "Scoring",
    "The scoring of {} was stopped; the same metric again scores all answers.",
    "was not scored",
    "Reading the answers …",
)
JUDGING_JOB = JobKind(
    "judging",
    "Judging",
    "The judging of {} was stopped; Judge again asks about the rest.",
    "was not completely judged",
    "Starting the judge …",
)


IMPORT_JOB = JobKind(
    "import",
    "Importing into",
    "The import into {} was stopped; nothing of it is stored.",
    "got nothing",
    "Reading the file …",
    roles=(ADMIN,),
    killed_message="The import into {} was killed; the next start of the server finishes or undoes it.",
)


def start_world_job(
    database: Database, world: str, activity: str, call: str, scratch: ScratchFolder | None = None
) -> None:
    """Generate or import a world in the background, as an administrator.

    JobError if a job of that world is running; Conflict if the person is no administrator.
    """
    jobs().start(WORLD_JOB, world, activity, call, scratch, person_id=authorize(database, ADMIN))


def list_world_jobs() -> list[Job]:
    """Return the jobs of worlds that are running or not dismissed."""
    return jobs().list_jobs(WORLD_JOB)


def show_world_jobs(*, for_administrator: bool) -> None:
    """Draw the jobs of worlds, refreshed every second while one runs; the whole page reruns when the last one ends.

    Only an administrator can stop and dismiss them, and reads why one failed: the reason may quote an imported file.
    """
    running = any(job.state == "running" for job in list_world_jobs())
    st.fragment(_show_world_jobs, run_every=1.0 if running else None)(
        was_running=running, for_administrator=for_administrator
    )


def _show_world_jobs(*, was_running: bool, for_administrator: bool) -> None:
    world_jobs = list_world_jobs()
    if was_running and not any(job.state == "running" for job in world_jobs):
        # The page's list now has the new world.
        st.rerun()
    for job in world_jobs:
        with st.container(key=f"job_{job.name}", border=True, gap="small"):
            if job.state == "running":
                _show_running_job(job, f"stop_{job.name}", "Starting …", stoppable=for_administrator)
            else:
                _show_finished_world_job(job, for_administrator=for_administrator)


def _show_finished_world_job(job: Job, *, for_administrator: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        name, duration = escape_markdown(job.name), _format_duration(job.seconds)
        match job.state:
            case "done":
                st.markdown(f":material/check: **{name}** is ready ({duration})", width="stretch")
                if st.button("Open", key=f"see_{job.name}", type="primary"):
                    jobs().dismiss(job)
                    go_to_world(job.name)
                    st.rerun()
            case "stopped":
                st.markdown(
                    f":material/stop: **{name}** was stopped after {duration}; its files are removed.", width="stretch"
                )
            case _:
                reason = f": {escape_markdown(job.error)}" if for_administrator else "; an administrator can see why."
                st.markdown(f":red[:material/error:] **{name}** was not made{reason}", width="stretch")
        if for_administrator:
            st.button("Dismiss", key=f"dismiss_{job.name}", on_click=jobs().dismiss, args=(job,), type="tertiary")


def start_verb_job(database: Database, kind: JobKind, name: str, call: str) -> None:
    """Start the call of a task (tasks.task.dump_call) as the person who acts, unless it is already running.

    If the person may not, the page says so, and its script ends here.
    """
    try:
        person_id = authorize(database, *kind.roles)
    except StoreError as error:
        st.error(format_sentence(str(error)))
        st.stop()
    with suppress(JobError):
        jobs().start(kind.key, name, kind.activity, call, person_id=person_id)


def may_start(database: Database, kind: JobKind) -> bool:
    """Whether the person who acts may start and stop jobs of this kind."""
    with database.read() as session:
        return has_acting_role(session, *kind.roles)


def explain_roles(kind: JobKind) -> str:
    """Who may start jobs of this kind, as a sentence."""
    return "Reviewers and administrators can start this." if kind.roles else "Ask an administrator for an invitation."


def start_import_job(database: Database, project: str, call: str, scratch: ScratchFolder) -> None:
    """Import the upload in the folder into the project, as an administrator.

    JobError if another import into it is running; Conflict if the person is no administrator.
    """
    person_id = authorize(database, *IMPORT_JOB.roles)
    jobs().start(IMPORT_JOB.key, project, IMPORT_JOB.activity, call, scratch, person_id=person_id)


def show_import_job(database: Database) -> None:
    """Draw the latest import that is running or not dismissed, and once the result of the last one."""
    for job in jobs().list_jobs(IMPORT_JOB.key)[:1]:
        show_verb_job(database, IMPORT_JOB, job.name)
    if result := st.session_state.pop(_RESULT_KEY, None):
        st.success(escape_markdown(result))


def show_verb_job(database: Database, kind: JobKind, name: str) -> bool:
    """Draw the job of that name, refreshed every second while it runs; returns whether it is running."""
    job = jobs().find(kind.key, name)
    if job is None:
        return False
    running = job.state == "running"
    st.fragment(_show_verb_job, run_every=1.0 if running else None)(
        kind, job, was_running=running, stoppable=may_start(database, kind)
    )
    return running


def _show_verb_job(kind: JobKind, job: Job, *, was_running: bool, stoppable: bool) -> None:
    if job.state == "done":
        if kind is IMPORT_JOB:
            st.session_state[_RESULT_KEY] = job.message
        jobs().dismiss(job)
    if job.state == "done" or (was_running and job.state != "running"):
        # The whole page changes: it shows the stored result.
        st.rerun()
    with st.container(key=f"{kind.key}_job", border=True, gap="small"):
        if job.state == "running":
            _show_running_job(job, f"stop_{kind.key}", kind.waiting_message, stoppable=stoppable)
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(_format_end(kind, job), width="stretch")
            if stoppable and st.button("Dismiss", key=f"dismiss_{kind.key}", type="tertiary"):
                jobs().dismiss(job)
                st.rerun()


def _format_end(kind: JobKind, job: Job) -> str:
    name = f"**{escape_markdown(job.name)}**"
    if job.was_killed:
        return f":red[:material/error:] {kind.killed_message.format(name)}"
    if job.state == "stopped":
        return f":material/stop: {kind.stopped_message.format(name)}"
    return f":red[:material/error:] {name} {kind.failed_message}: {escape_markdown(job.error)}"


def _show_running_job(job: Job, stop_key: str, waiting_message: str, *, stoppable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        stopping_note = " · stopping …" if job.stopping else ""
        title = f"**{job.activity} {escape_markdown(job.name)}** · {_format_duration(job.seconds)}{stopping_note}"
        st.markdown(title, width="stretch")
        if stoppable:
            st.button("Stop", key=stop_key, on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
    message = escape_markdown(job.message or waiting_message)
    if job.fraction is None:
        st.caption(message)
    else:
        st.progress(job.fraction, text=message)


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
