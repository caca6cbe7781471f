"""Whether a demonstration can be repeated: read from its links, and tried by replay with it alone.

It is tried on its own question, and on questions with other names of the same kind: those of the world's graph, or else
those of the other questions of its project.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.projects import DEFAULT_INSTRUCTION, list_question_texts
from showhow.db.run_spec import RunLimits
from showhow.db.runs.repetitions import FAILS, NEEDS_LINK, OTHER_NAMES, OWN_QUESTION, Repetition, Trial
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.comparison.drift import check_repetition
from showhow.reasoners.base import Task
from showhow.reasoners.linking import complete_origins, iterate_origins, list_arguments_to_link
from showhow.reasoners.mentions import WorldWords, find_question_mentions
from showhow.reasoners.replay.agent import ReplayReasoner
from showhow.reasoners.replay.counterparts import is_alike
from showhow.reasoners.replay.substitution import compile_substitution, uses_external_results
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.tools.arguments import ToolError
from showhow.tools.tool import Tool, ToolContext
from showhow.worlds.folder import WorldError
from showhow.worlds.lexicon.english import nouns_for_kinds
from showhow.worlds.source import SourceError

ENOUGH_TRIALS, MAX_TRIALS = 2, 6
"""The questions that have to be answered, and the most that are asked for it."""
MAX_SECONDS = 60.0
MAX_OTHER_NAMES, MAX_OTHER_QUESTIONS = 200, 500
Span = tuple[int, int]


def read_state(record: TraceRecord) -> Repetition:
    """What the stored links alone say."""
    unlinked = list_arguments_to_link(record)
    if any(argument.is_broken for argument in unlinked):
        return Repetition(FAILS)
    return Repetition(NEEDS_LINK if unlinked else OWN_QUESTION)


def try_repetition(services: Services, record: TraceRecord, question: str | None = None) -> Repetition:
    """Ask replay the own question of a trace, then this one or questions with other names."""
    try:
        context = replace(services.tool_context(record.project.world), chat=None)
        tools = services.tool_registry().offered_tools(context.world, record.project.tools)
    except (WorldError, SourceError, ToolError) as error:
        return Repetition(FAILS, why=str(error))
    if (why := check_repetition(record, context, tools)) is not None:
        return Repetition(FAILS, why=why)
    with services.database.read() as session:
        others = list_question_texts(session, record.project.id)[:MAX_OTHER_QUESTIONS]
    asked: Iterable[str] = (
        [question] if question else islice(iterate_other_questions(record, context, others), MAX_TRIALS)
    )
    needed = 1 if question else ENOUGH_TRIALS
    trials: list[Trial] = []
    end = time.monotonic() + MAX_SECONDS
    for text in asked:
        seconds = end - time.monotonic()
        if seconds <= 0 or sum(trial.answer is not None for trial in trials) == needed:
            break
        trials.append(_try(record, text, context, tools, seconds))
    answered = [trial for trial in trials if trial.answer is not None]
    if len(answered) == needed or (answered and len(answered) == len(trials)):
        return Repetition(OTHER_NAMES, tuple(answered))
    why = "" if trials else "nothing here has a name of the same kind; write a question with one"
    return Repetition(read_state(record).state, tuple(trials[:ENOUGH_TRIALS]), why)


def _try(record: TraceRecord, question: str, context: ToolContext, tools: Sequence[Tool], seconds: float) -> Trial:
    task = Task(
        question,
        context,
        tools,
        [record],
        instruction=record.project.instruction or DEFAULT_INSTRUCTION,
        answer_format=AnswerFormat.from_json(record.project.answer_format),
    )
    control = RunControl(RunLimits(steps=None, seconds=seconds))
    outcome = run_reasoner(ReplayReasoner(), task, MemoryRecorder(), control)
    if outcome.answers is None:
        return Trial(question, None, outcome.refusal_reason or outcome.failure or outcome.ending)
    return Trial(question, outcome.answers.final_answer or "")


def iterate_other_questions(record: TraceRecord, context: ToolContext, others: Sequence[str]) -> Iterator[str]:
    """Yield other questions in the words of the trace's own one, then its own one with other names in their places."""
    own = record.question.full_text
    if uses_external_results(record):
        program = compile_substitution(record)
        yield from (text for text in others if text != own and program.match(text) is not None)
    world = WorldWords(context.world, context.encode)
    spans = _find_names(record, own, world)
    chooser = random.Random(own)  # noqa: S311 - the same choice whenever it is tried
    pools = []
    for start, end in spans:
        name = own[start:end]
        pool = world.list_names_like(name, MAX_OTHER_NAMES) or _list_names_in(others, name, own, world)
        chooser.shuffle(pool)
        pools.append(pool)
    if not spans or not all(pools):
        return
    for turn in range(max(map(len, pools))):
        names = [pool[(turn + place) % len(pool)] for place, pool in enumerate(pools)]
        if len(set(names)) == len(names):
            text = own
            for (start, end), name in reversed(list(zip(spans, names, strict=True))):
                text = text[:start] + name + text[end:]
            yield text


def _find_names(record: TraceRecord, question: str, world: WorldWords) -> list[Span]:
    """The names in the question: those that the world knows, or else those that arguments were taken from."""
    mentions = [
        (start, end)
        for start, end in find_question_mentions(question, world.knows, nouns_for_kinds())
        if world.knows(question[start:end])
    ]
    if mentions:
        return mentions
    origins = [o for own in complete_origins(record).values() for value in own.values() for o in iterate_origins(value)]
    spans = sorted({(o["start"], o["end"]) for o in origins if o["from"] == "question"})
    return [] if any(one[1] > other[0] for one, other in pairwise(spans)) else spans


def _list_names_in(questions: Sequence[str], name: str, own: str, world: WorldWords) -> list[str]:
    """The names in other questions that may stand for a name."""
    names = dict.fromkeys(
        text[start:end]
        for text in questions
        for start, end in find_question_mentions(text, world.knows, nouns_for_kinds())
    )
    return [other for other in names if other not in own and is_alike(name, other)][:MAX_OTHER_NAMES]
