"""The failures of a verification in the order in which their repairs teach most, and what the repairs have brought."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from app.libraries import freeze_these
from app.resources import database
from db import libraries, verifications
from db.assignments import hold
from db.database import Conflict
from db.models import Library, Project, Run
from db.verifications import Outcome, Repair
from fewshot_library.card import Terms
from fewshot_library.teaching import teaching_order
from settings import DEFAULT_LIBRARY


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that was not answered rightly, and who repairs it."""

    outcome: Outcome
    repair: Repair | None

    @property
    def open(self) -> bool:
        """Whether somebody may take it."""
        return self.repair is None or self.repair.status in ("rejected", "failed")


def failures(run: Run) -> list[Failure]:
    """The run's failures: those that nobody repairs yet first, in the order in which they teach most."""
    with database().read() as session:
        found = [each for each in verifications.outcomes(session, run) if each.failed]
        repairs = verifications.repairs(session, found)
    every = [Failure(each, repairs.get(each.trace_id) if each.trace_id else None) for each in found]
    shown = shown_by_kind(run)
    left, taken = [each for each in every if each.open], [each for each in every if not each.open]
    shown.update(each.outcome.kind for each in taken)
    order = teaching_order([each.outcome.kind for each in left], shown)
    return [left[place] for place in order] + taken


def shown_by_kind(run: Run) -> Counter[str | None]:
    """How many demonstrations of each kind the run's library has."""
    if run.library_id is None:
        return Counter()
    with database().read() as session:
        held = libraries.fitting_ids(session, libraries.Wanted(), run.library_id)
        return verifications.kinds_of(session, held)


def next_failure(project: Project, person_id: UUID) -> Failure | None:
    """What this person should repair next of the latest verification, held for them; None when nothing is left."""
    with database().read() as session:
        runs = verifications.verifications(session, project.id)
        left = verifications.left_to_others(session, person_id)
    if not runs:
        return None
    every = [each for each in failures(runs[0]) if each.outcome.question_id not in left]
    mine = [
        each for each in every if each.repair and (each.repair.status, each.repair.person_id) == ("held", person_id)
    ]
    found = next(iter([*mine, *(each for each in every if each.open)]), None)
    if found is not None:
        with database().begin() as session:
            hold(session, found.outcome.question_id, person_id)
    return found


def mended(run: Run) -> list[UUID]:
    """The approved repairs of the run's failures."""
    with database().read() as session:
        failed = [each for each in verifications.outcomes(session, run) if each.failed]
        return verifications.approved_repairs(session, failed)


def freeze_repairs(run: Run, by: str, name: str | None = None) -> Library:
    """The next version of the run's library, or of another name, with the approved repairs added."""
    repairs = set(mended(run))
    if not repairs:
        raise Conflict("no repair of this verification is approved yet; repair a failure on the Annotate page first")
    with database().read() as session:
        held = libraries.demonstrations(session, run.library_id) if run.library_id else []
        known = {each.trace_id for each in held}
        fresh = [each for each in libraries.candidates(session, libraries.Wanted()) if each.trace_id in repairs - known]
    told = run.configuration["library"]
    added = f"{len(fresh)} repair{'' if len(fresh) == 1 else 's'}"
    note = f"{told or 'nothing'} and {added} of failures of the verification of {run.started_at:%Y-%m-%d %H:%M} UTC"
    named = name or (told.rpartition(":")[0] if told else DEFAULT_LIBRARY)
    return freeze_these(named, [*held, *fresh], libraries.Wanted(), Terms(by=by, note=note))
