"""Whether this server can do its work now: the database answers, its schema is known, and the worlds open."""

from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from showhow.db.database import StoreError
from showhow.db.questions.projects import list_project_worlds
from showhow.db.storage.schema import require_current_revision
from showhow.runs.services import Services
from showhow.worlds.folder import WorldError, WorldNotFound
from showhow.worlds.source import SourceError


def readiness_endpoint(services: Services) -> Callable[[Request], Awaitable[PlainTextResponse]]:
    """Build the endpoint that a proxy asks: "ok" if people can work here; 503 with the reason if not."""

    async def readyz(_request: Request) -> PlainTextResponse:
        problem = await run_in_threadpool(find_problem, services)
        return PlainTextResponse(problem or "ok", status_code=503 if problem else 200)

    return readyz


def find_problem(services: Services) -> str | None:
    """The sentence about what keeps people from working; None if nothing does."""
    try:
        # A database that was upgraded or replaced since this process opened it may have columns that it does not know.
        require_current_revision(services.database)
        with services.database.read() as session:
            worlds = list_project_worlds(session)
        missing = [world for world in worlds if not _opens(services, world)]
    except (StoreError, WorldError, SourceError) as error:
        return str(error)
    # A single one may have been removed on purpose; its project stays, and people work on the others.
    if worlds and len(missing) == len(worlds):
        return f"none of the worlds of the projects is in {services.settings.worlds_folder}; mount or restore them"
    return None


def _opens(services: Services, world: str) -> bool:
    try:
        services.open_world(world)
    except WorldNotFound:
        return False
    return True
