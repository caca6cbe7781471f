"""The failures of a verification in the order in which their repairs teach most, and what the repairs have brought.

In which order failures are worth a repair: where the library is thin and failures are many, first.

Of a kind of question with `failed` failures that nobody repairs yet and `shown` demonstrations or repairs, the next
repair is worth failed / (1 + shown): it may help that many questions, and the less the more is shown already. The kind
where that is most comes first; each one that is taken counts as shown from then on, so that kinds take turns as their
worth falls. Within a kind the order of the questions stays.
"""

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from db import libraries, verifications
from db.assignments import reserve_question
from db.database import Conflict
from db.models import Library, Project, Run
from db.verifications import Repair, VerificationOutcome
from fewshot_library.card import FreezeOptions
from runs.services import Services
from settings import DEFAULT_LIBRARY

KindType = TypeVar("KindType", bound=Hashable)


def order_repairs(kinds: Sequence[KindType], shown: Mapping[KindType, int]) -> list[int]:
    """The places of the failures, given the kind of each and how many demonstrations each kind has; ties by place."""
    left: dict[KindType, deque[int]] = {}
    for place, kind in enumerate(kinds):
        left.setdefault(kind, deque()).append(place)
    known = Counter(dict(shown))
    order: list[int] = []
    while left:
        kind = max(left, key=lambda candidate: repair_value(len(left[candidate]), known[candidate]))
        order.append(left[kind].popleft())
        known[kind] += 1
        if not left[kind]:
            del left[kind]
    return order


def repair_value(failed: int, shown: int) -> float:
    """What the next repair of a kind is worth."""
    return failed / (1 + shown)


@dataclass(frozen=True, slots=True)
class VerificationFailure:
    """A question that was not answered rightly, and who repairs it."""

    outcome: VerificationOutcome
    repair: Repair | None

    @property
    def is_open(self) -> bool:
        """Whether somebody may take it."""
        return self.repair is None or self.repair.status in ("rejected", "failed")


def list_failures(services: Services, run: Run) -> list[VerificationFailure]:
    """The run's failures: those that nobody repairs yet first, in the order in which they teach most."""
    with services.database.read() as session:
        failed = [outcome for outcome in verifications.list_outcomes(session, run) if outcome.is_failed]
        repairs = verifications.find_repairs(session, failed)
    failures = [
        VerificationFailure(outcome, repairs.get(outcome.trace_id) if outcome.trace_id else None) for outcome in failed
    ]
    shown = count_demonstrations_by_kind(services, run)
    left, repaired = (
        [failure for failure in failures if failure.is_open],
        [failure for failure in failures if not failure.is_open],
    )
    shown.update(failure.outcome.kind for failure in repaired)
    order = order_repairs([failure.outcome.kind for failure in left], shown)
    return [left[place] for place in order] + repaired


def count_demonstrations_by_kind(services: Services, run: Run) -> Counter[str | None]:
    """How many demonstrations of each kind the run's library has."""
    if run.library_id is None:
        return Counter()
    with services.database.read() as session:
        held = libraries.list_matching_ids(session, libraries.DemonstrationFilter(), run.library_id)
        return verifications.count_kinds(session, held)


def claim_next_failure(services: Services, project: Project, person_id: UUID) -> VerificationFailure | None:
    """What this person should repair next of the latest verification, held for them; None when nothing is left."""
    with services.database.read() as session:
        runs = verifications.list_verifications(session, project.id)
        left = verifications.skipped_question_ids(session, person_id)
    if not runs:
        return None
    failures = [failure for failure in list_failures(services, runs[0]) if failure.outcome.question_id not in left]
    mine = [
        failure
        for failure in failures
        if failure.repair and (failure.repair.status, failure.repair.person_id) == ("held", person_id)
    ]
    claimed = next(iter([*mine, *(failure for failure in failures if failure.is_open)]), None)
    if claimed is not None:
        with services.database.begin() as session:
            reserve_question(session, claimed.outcome.question_id, person_id)
    return claimed


def list_approved_repairs(services: Services, run: Run) -> list[UUID]:
    """The approved repairs of the run's failures."""
    with services.database.read() as session:
        failed = [outcome for outcome in verifications.list_outcomes(session, run) if outcome.is_failed]
        return verifications.list_approved_repairs(session, failed)


def freeze_repairs(services: Services, run: Run, by: str, name: str | None = None) -> Library:
    """The next version of the run's library, or of another name, with the approved repairs added."""
    repairs = set(list_approved_repairs(services, run))
    if not repairs:
        raise Conflict("no repair of this verification is approved yet; repair a failure on the Annotate page first")
    with services.database.read() as session:
        held = libraries.load_demonstrations(session, run.library_id) if run.library_id else []
        known = {demonstration.trace_id for demonstration in held}
        fresh = [
            demonstration
            for demonstration in libraries.list_candidates(session, libraries.DemonstrationFilter())
            if demonstration.trace_id in repairs - known
        ]
    library = run.configuration["library"]
    added = f"{len(fresh)} repair{'' if len(fresh) == 1 else 's'}"
    note = f"{library or 'nothing'} and {added} of failures of the verification of {run.started_at:%Y-%m-%d %H:%M} UTC"
    named = name or (library.rpartition(":")[0] if library else DEFAULT_LIBRARY)
    return services.freeze_demonstrations(
        named, [*held, *fresh], libraries.DemonstrationFilter(), FreezeOptions(by=by, note=note)
    )
