"""The failures of a verification in the order of repair priority, and the library version with their repairs.

For a kind of question with `failed` open failures and `shown` demonstrations or repairs, the priority of the next
repair is failed / (1 + shown): a repair may help that many questions, and the less, the more demonstrations there are.
The failures are ordered greedily: the kind with the highest priority comes first, and each chosen failure counts as
shown from then on, so kinds take turns as their priority falls. Within a kind the order of the questions is kept.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from showhow.db.database import Conflict
from showhow.db.models import Library, Project, Run
from showhow.db.runs import verifications
from showhow.db.runs.error_categories import UNCATEGORIZED, load_error_categories
from showhow.db.runs.verifications import Repair, VerificationOutcome
from showhow.db.traces import libraries
from showhow.fewshot_library.library import FreezeOptions
from showhow.runs.services import Services
from showhow.settings import DEFAULT_LIBRARY

KindType = TypeVar("KindType", bound=Hashable)


def order_repairs(kinds: Sequence[KindType], shown: Mapping[KindType, int]) -> list[int]:
    """Order failures by repair priority; return their indexes.

    `kinds` holds the kind of each failure, `shown` the number of demonstrations of each kind. Ties keep their order.
    """
    open_failures: dict[KindType, deque[int]] = {}
    for index, kind in enumerate(kinds):
        open_failures.setdefault(kind, deque()).append(index)
    shown_counts = Counter(dict(shown))
    order: list[int] = []
    while open_failures:
        kind = max(
            open_failures,
            key=lambda candidate: repair_priority(len(open_failures[candidate]), shown_counts[candidate]),
        )
        order.append(open_failures[kind].popleft())
        shown_counts[kind] += 1
        if not open_failures[kind]:
            del open_failures[kind]
    return order


def repair_priority(failed: int, shown: int) -> float:
    """The priority of the next repair of a kind."""
    return failed / (1 + shown)


@dataclass(frozen=True, slots=True)
class VerificationFailure:
    """A question without a correct answer, and its repair, if there is one."""

    outcome: VerificationOutcome
    repair: Repair | None
    category: str | None = None
    """The category of its error, if a person has set one."""

    @property
    def is_open(self) -> bool:
        """Whether it can be claimed for a repair."""
        return self.repair is None or self.repair.status in ("rejected", "failed")


def list_failures(services: Services, run: Run) -> list[VerificationFailure]:
    """The run's failures: open ones first, ordered by repair priority, then those with a repair."""
    with services.database.read() as session:
        failed = _first_by_question(verifications.list_outcomes(session, run, failed=True))
        repairs = verifications.find_repairs(session, failed)
        categories = load_error_categories(session, run.id)
    failures = [
        VerificationFailure(
            outcome, repairs.get(outcome.trace_id) if outcome.trace_id else None, categories.get(outcome.question_id)
        )
        for outcome in failed
    ]
    shown = count_demonstrations_by_kind(services, run)
    open_failures = [failure for failure in failures if failure.is_open]
    repaired = [failure for failure in failures if not failure.is_open]
    shown.update(failure.outcome.kind for failure in repaired)
    order = order_repairs([failure.outcome.kind for failure in open_failures], shown)
    return [open_failures[index] for index in order] + repaired


def count_categories(answers: Iterable[VerificationFailure]) -> dict[str, int]:
    """Count the failures among the answers by category, the most frequent first, those without one last."""
    counts = Counter(answer.category or UNCATEGORIZED for answer in answers if not answer.outcome.is_correct)
    return dict(sorted(counts.items(), key=lambda entry: (entry[0] == UNCATEGORIZED, -entry[1], entry[0])))


def _first_by_question(failed: Iterable[VerificationOutcome]) -> list[VerificationOutcome]:
    """The first failed answer to each question: one repair corrects all repetitions."""
    first: dict[UUID, VerificationOutcome] = {}
    for outcome in failed:
        first.setdefault(outcome.question_id, outcome)
    return list(first.values())


def count_demonstrations_by_kind(services: Services, run: Run) -> Counter[str | None]:
    """Count the demonstrations of the run's library by kind of question."""
    if run.library_id is None:
        return Counter()
    with services.database.read() as session:
        trace_ids = libraries.list_matching_ids(session, libraries.DemonstrationFilter(), run.library_id)
        return verifications.count_kinds(session, trace_ids)


def list_open_failures(services: Services, project: Project, person_id: UUID) -> list[VerificationFailure]:
    """List the failures of the latest verification that the person can repair, those that they have reserved first.

    A fork of a failure, or a reservation of its question, holds it; questions that the person skipped are left out.
    """
    with services.database.read() as session:
        runs = verifications.list_verifications(session, project.id)
        skipped = verifications.skipped_question_ids(session, person_id)
    if not runs:
        return []
    failures = [failure for failure in list_failures(services, runs[0]) if failure.outcome.question_id not in skipped]
    reserved = [
        failure
        for failure in failures
        if failure.repair and (failure.repair.status, failure.repair.person_id) == ("held", person_id)
    ]
    return [*reserved, *(failure for failure in failures if failure.is_open)]


def list_approved_repairs(services: Services, run: Run) -> list[UUID]:
    """The ids of the approved repairs of the run's failures."""
    with services.database.read() as session:
        failed = verifications.list_outcomes(session, run, failed=True)
        return verifications.list_approved_repairs(session, failed)


def freeze_repairs(services: Services, run: Run, by: str, name: str | None = None) -> Library:
    """Freeze the run's library with the approved repairs added, as its next version or under another name.

    Conflict if no repair is approved.
    """
    repairs = set(list_approved_repairs(services, run))
    if not repairs:
        raise Conflict("no repair of this verification is approved yet; repair a failure on the Annotate page first")
    with services.database.read() as session:
        previous = libraries.load_demonstrations(session, run.library_id) if run.library_id else []
        previous_ids = {demonstration.trace_id for demonstration in previous}
        added = [
            demonstration
            for demonstration in libraries.list_candidates(session, libraries.DemonstrationFilter())
            if demonstration.trace_id in repairs - previous_ids
        ]
    library = run.spec.library
    note = (
        f"{library or 'nothing'} and {len(added)} repair{'' if len(added) == 1 else 's'} of failures of the "
        f"verification of {run.started_at:%Y-%m-%d %H:%M} UTC"
    )
    version_name = name or (library.rpartition(":")[0] if library else DEFAULT_LIBRARY)
    return services.freeze_demonstrations(
        version_name, [*previous, *added], libraries.DemonstrationFilter(), FreezeOptions(by=by, note=note)
    )
