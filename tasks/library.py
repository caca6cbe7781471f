"""Tasks over libraries: freeze a version, and count how often its demonstrations are selected."""

from dataclasses import dataclass, replace

from showhow.db.models import Library
from showhow.db.people.users import authorize
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.evaluation.comparison.selection_usage import Report, UsageRequest, compute_usage
from showhow.fewshot_library.library import FreezeOptions
from showhow.option_fields import group, option
from showhow.runs.services import Services
from showhow.tasks.progress import print_count
from showhow.tasks.task import author_name, fail_on_interrupt, require_role

PROGRESS_INTERVAL = 20
"""Questions between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeLibrary:
    """Which approved traces become the next version of which library."""

    name: str = option(help="The library's name.", is_argument=True)
    conditions: DemonstrationFilter = group(DemonstrationFilter, "Which traces")
    options: FreezeOptions = group(FreezeOptions, "")


def freeze(services: Services, request: FreezeLibrary) -> Library:
    """Freeze the approved traces that match; LeakageError, unless forced, if one is of the test split."""
    person_id = authorize(services.database)
    options = replace(request.options, by=author_name(services), person_id=person_id)
    return services.freeze_version(request.name, request.conditions, options)


def count_usage(services: Services, request: UsageRequest) -> Report:
    """Count how often each demonstration would be selected for the questions of a project."""
    require_role(services)
    with fail_on_interrupt("The count was stopped; its results are not stored."):
        return compute_usage(services, request, _print_progress)


def _print_progress(done: int, questions: int) -> None:
    if done % PROGRESS_INTERVAL == 0 or done == questions:
        print_count(done, questions, "questions")
