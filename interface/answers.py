"""Ask a reasoner one question."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from showhow.db.run_spec import RunLimits
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.evaluation.scoring.answer_notation import find_project_notation
from showhow.fewshot_library.formats.chat import trace_to_messages
from showhow.fewshot_library.formats.openai import encode_message
from showhow.fewshot_library.formats.react import record_to_transcript
from showhow.fewshot_library.formats.react_text import format_transcript
from showhow.interface.demonstrations import Library
from showhow.interface.errors import in_one_sentence
from showhow.interface.homes import Home, find_home, run_interruptibly
from showhow.interface.places import World
from showhow.interface.run_options import choose_spec, choose_world
from showhow.runs.ask import AskRequest, begin_run
from showhow.runs.runner import RunControl
from showhow.worlds.open import NO_WORLD

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """How a reasoner answered a question; its trace stays in the home."""

    question: str
    text: str | None
    """The final answer; None if there is none."""
    response: str | None
    """The answer as a sentence or a few, where the reasoner writes one."""
    ending: str
    """How the run ended: answered, refused, failed, limit ..."""
    failure: str | None
    """Why there is no answer, in one sentence."""
    trace: str
    """The id of the trace."""
    seconds: float
    usage: Mapping[str, Any]
    """The calls of the model, their tokens and their cost."""
    record: TraceRecord = field(repr=False)

    def __str__(self) -> str:
        return self.text or f"{self.ending}: {self.failure}"

    def steps(self) -> "pd.DataFrame":
        """A row for each step: position, thought, tool, arguments, observation, error."""
        import pandas as pd  # noqa: PLC0415 - it takes half a second to import

        names = ["position", "thought", "tool", "arguments", "observation", "error"]
        rows = [[getattr(step, name) for name in names] for step in self.record.steps]
        return pd.DataFrame(rows, columns=names)

    def as_messages(self) -> list[dict[str, Any]]:
        """The trace as messages of OpenAI's API, the question first."""
        return list(map(encode_message, trace_to_messages(self.record)))

    def as_text(self) -> str:
        """The trace as one text with Thought, Action, Action Input and Observation."""
        return format_transcript(record_to_transcript(self.record).strip_values())


@in_one_sentence()
def ask(  # noqa: PLR0913 - those of the verb
    question: str,
    *,
    world: World | str | None = None,
    project: str | None = None,
    reasoner: str | None = None,
    preset: str | None = None,
    model: Any = None,
    library: Library | str | None = None,
    limits: RunLimits | None = None,
    on_step: Callable[[Any], None] | None = None,
    home: Home | None = None,
    **options: Any,
) -> Answer:
    """Have a reasoner answer a question in a world, or as the questions of a project are.

    `reasoner` is a name of `showhow ask --help`: by default replay, which needs no model, or humaniq with one. `model`
    is a chat model of LangChain, a function from messages of OpenAI's API to a text or message (with a parameter
    `tools` it gets their definitions), or the name of a profile. `library` is one of the home, by default `default`, if
    there is one. `options` are the reasoner's own, such as k and selection; `preset` names a set of them, such as
    published, which they replace. `on_step` is called with each step as it begins and ends. A question without an
    answer is no error: `failure` says why.

    >>> answer = ask("Why is the sky blue?", world=world, library=library)
    >>> answer.ending, answer.text
    ('refused', None)
    """
    chosen_home = find_home(
        home, world.home if isinstance(world, World) else None, library.home if isinstance(library, Library) else None
    )
    services = chosen_home.services
    name = choose_world(chosen_home, world, project)
    spec = choose_spec(chosen_home, reasoner, preset, model, library, options, limits)
    notation = find_project_notation(services.database, project)
    request = AskRequest(question, name or NO_WORLD, spec.replace(date_notation=notation or None), project)
    run = begin_run(services, request, RunControl())
    run.on_step = on_step or run.on_step
    outcome = run_interruptibly(run.execute, run.stop)
    with services.database.read() as session:
        record = load_trace(session, run.trace_id)
    return Answer(
        *(record.question.text, record.trace.final_answer, outcome.details.get("response"), outcome.ending),
        *(outcome.failure, str(run.trace_id), round(outcome.seconds, 3), outcome.usage or {}),
        record,
    )
