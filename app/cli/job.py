"""The tasks that pages start in the background."""

import sys

from showhow.app.services import current_services
from showhow.tasks.task import run_call


def job() -> None:
    """Run the task that standard input has as JSON."""
    run_call(current_services(), sys.stdin.read())
