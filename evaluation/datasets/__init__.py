"""Question files: the table of their formats; a new one has a QuestionFormat in this folder and a line here."""

from collections.abc import Iterable
from pathlib import Path

from showhow.db.database import RowNotFound
from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets.graph_answers import COMPMIX, CWQ, GRAILQA, MINTAKA, PATHQUESTION, WEBQSP
from showhow.evaluation.datasets.layouts import ColumnNames
from showhow.evaluation.datasets.open_domain_answers import DROP, FRAMES, KILT, POPQA, SQUAD, TRIVIAQA
from showhow.evaluation.datasets.reader import AUTO, QuestionReader, UnreadRecord, open_questions
from showhow.evaluation.datasets.record import CSV, JSONL, QuestionFormat, UnreadableRecord
from showhow.evaluation.datasets.sparql_answers import LCQUAD2, QALD, SOLVED_QALD, SPINACH
from showhow.evaluation.datasets.text_answers import (
    ATOMR,
    BLENDQA,
    CRAG,
    HOTPOTQA,
    MUSIQUE,
    PHANTOMWIKI,
    STRATEGYQA,
    TWO_WIKI,
)
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.guard.plugins import Registry
from showhow.worlds.folder import world_folder
from showhow.worlds.input_files import MalformedFile

QUESTION_FORMATS = Registry(
    "question_formats",
    QuestionFormat,
    (
        *(JSONL, CSV),
        *(TWO_WIKI, HOTPOTQA, MUSIQUE),
        *(MINTAKA, COMPMIX),
        *(QALD, SOLVED_QALD, LCQUAD2, SPINACH),
        *(WEBQSP, CWQ, GRAILQA, PATHQUESTION),
        *(TRIVIAQA, SQUAD, KILT, POPQA),
        *(DROP, FRAMES),
        *(ATOMR, BLENDQA, CRAG, STRATEGYQA, PHANTOMWIKI),
    ),
    raises=(UnreadableRecord,),
)


def list_format_names() -> str:
    """The values of `--format`, for help texts and messages."""
    return ", ".join((AUTO, *QUESTION_FORMATS))


def open_question_file(
    file: Path, format_name: str = AUTO, language: str = "en", columns: ColumnNames | None = None
) -> QuestionReader:
    """Open a file for an import, which passes over records that cannot be read and counts them."""
    return open_questions(file, QUESTION_FORMATS, format_name, language, columns)


def read_questions(file: Path, format_name: str = AUTO) -> list[QuestionRecord]:
    """Read all questions of a file; MalformedFile names the first record that cannot be read, and the reason."""
    questions = list(_require_readable(open_question_file(file, format_name), file))
    if not questions:
        raise MalformedFile(file, None, "the file holds no question")
    return questions


def read_world_questions(worlds_folder: Path, world: str) -> list[QuestionRecord]:
    """Read the questions that a world was generated with; RowNotFound if it has none."""
    file = world_folder(worlds_folder, world) / QUESTIONS_FILE
    if not file.is_file():
        raise RowNotFound(f"the world {world} has no questions of its own; name a project that has some")
    return read_questions(file, JSONL.name)


def _require_readable(records: Iterable[QuestionRecord | UnreadRecord], file: Path) -> Iterable[QuestionRecord]:
    for record in records:
        if isinstance(record, UnreadRecord):
            line, place = (record.position, "") if record.is_line else (None, f"{record.place}: ")
            raise MalformedFile(file, line, f"{place}{record.reason}")
        yield record
