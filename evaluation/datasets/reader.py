"""Opens question files: finds their format, and reads them record by record.

reader = open_questions(file)
survey = reader.survey()
records = reader.iter_records()
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.db.unanswerable import find_gold_reason
from showhow.evaluation.datasets.gold_names import find_bare_id
from showhow.evaluation.datasets.layouts import ColumnNames, Layout, describe_fields, open_layout
from showhow.evaluation.datasets.record import (
    CSV,
    JSONL,
    Fields,
    QuestionFormat,
    UnreadableRecord,
    describe_type,
    parse_record,
)
from showhow.evaluation.value_format import format_count
from showhow.guard.plugins import Registry
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile

AUTO = "auto"
"""The format is detected from the structure of the first records."""
PREVIEW_SIZE = 5
_DOUBTFUL = re.compile(r"[^;]*+;.*+|\[.*+(?<=\])|n/?a|nan|none|null", re.IGNORECASE | re.DOTALL)
"""A gold answer as people write several, as a program prints a list, or as it prints that there is none."""
MAX_REASONS = 1_000
"""The reasons why records cannot be read that are told apart."""


class UnknownQuestionFormat(WorldError):
    """There is no question format with this name, or none with the structure of this file."""


@dataclass(frozen=True, slots=True)
class UnreadRecord:
    """A record that cannot be read as a question."""

    position: int
    """The number of the line, or of the record in a JSON document, from 1."""
    is_line: bool
    reason: str

    @property
    def place(self) -> str:
        """The position with its unit, such as line 3."""
        return f"{'line' if self.is_line else 'record'} {self.position}"


@dataclass(slots=True)
class UnreadCount:
    """The number of records that cannot be read for the same reason, and the first of them."""

    first: UnreadRecord
    count: int = 0

    def to_json(self) -> dict[str, Any]:
        """The count for programs."""
        return {"reason": self.first.reason, "count": self.count, "first": self.first.place}


@dataclass(slots=True)
class QuestionSurvey:
    """What an import of a file would store."""

    format_name: str
    fields: str
    """The fields of the first record with their types, for messages."""
    questions: int = 0
    with_gold: int = 0
    """The number of questions with at least one gold answer."""
    unanswerable: int = 0
    """The number of questions whose gold answer is that they cannot be answered."""
    with_several: int = 0
    """The number of questions with several gold answers, all of which a correct answer names."""
    with_bare_ids: int = 0
    """The number of questions with a gold answer that is an id, whose names the world's graph may have."""
    repeated_ids: int = 0
    """The number of questions with the id of an earlier one that has another text or other gold answers."""
    first_repeated: str = ""
    """The first of them: its id, its place and that of the earlier one."""
    doubtful: int = 0
    """The number of gold answers that are one text, and look like several answers or like none."""
    first_doubtful: str = ""
    """The first of them, with its place."""
    preview: list[QuestionRecord] = field(default_factory=list)
    """The first questions."""
    unread: dict[str, UnreadCount] = field(default_factory=dict)
    """The records that cannot be read, by reason."""

    def count_unread(self, record: UnreadRecord) -> None:
        """Count a record that cannot be read; the reasons after the first ones count as one."""
        reason = record.reason
        if reason not in self.unread and len(self.unread) >= MAX_REASONS:
            record = replace(record, reason=f"it cannot be read for one of more than {MAX_REASONS} reasons")
            reason = record.reason
        self.unread.setdefault(reason, UnreadCount(record)).count += 1

    @property
    def without_gold(self) -> int:
        """The number of questions without gold answers."""
        return self.questions - self.with_gold

    @property
    def repetition(self) -> str:
        """A sentence about the repeated ids."""
        count = format_count(self.repeated_ids, "question")
        return f"{count} with an earlier id, and another text or other gold answers (first {self.first_repeated})"

    @property
    def doubt(self) -> str:
        """A sentence about the doubtful gold answers."""
        look = "looks like several or none, and is one text" if self.doubtful == 1 else "look like several or none"
        kept = "" if self.doubtful == 1 else ", and are one text each"
        return (
            f"{format_count(self.doubtful, 'gold answer')} {look}{kept} (first {self.first_doubtful}); write several "
            "answers as a list, or with | in a table, and leave out what is none"
        )

    @property
    def unread_reasons(self) -> list[UnreadCount]:
        """The reasons, the most frequent first."""
        return sorted(self.unread.values(), key=lambda unread: -unread.count)

    @property
    def problem(self) -> str | None:
        """Why an import would store nothing that can be scored; None if there are gold answers."""
        if self.with_gold:
            return None
        return (
            f"none of its {self.questions:,} questions has a gold answer (format {self.format_name}; a record has "
            f"{self.fields})"
        )


class QuestionReader:
    """The questions of one file in one format."""

    def __init__(self, file: Path, layout: Layout, form: QuestionFormat, language: str) -> None:
        self.file, self.form = file, form
        self._layout, self._language = layout, language

    def __iter__(self) -> Iterator[QuestionRecord | UnreadRecord]:
        return (record for _, record in self._iter_places())

    def _iter_places(self) -> Iterator[tuple[int, QuestionRecord | UnreadRecord]]:
        for entry in self._layout.iter_entries():
            problem = entry.problem
            if problem is None and not isinstance(entry.value, dict):
                problem = f"a JSON object is required, not {describe_type(entry.value)}"
            if problem is None:
                try:
                    yield entry.position, parse_record(self.form, entry.value, self._language)
                except UnreadableRecord as error:
                    problem = str(error)
            if problem is not None:
                yield entry.position, self._make_unread(entry.position, problem)

    def _make_unread(self, position: int, problem: str) -> UnreadRecord:
        return UnreadRecord(position, self._layout.is_line_based, problem)

    def iter_records(self, split: str | None = None) -> Iterator[QuestionRecord]:
        """The questions that can be read, all of them in this split, or each in its own."""
        records = (record for record in self if isinstance(record, QuestionRecord))
        return (replace(record, split=split) for record in records) if split else records

    def survey(self) -> QuestionSurvey:
        """Read the whole file; MalformedFile if there is no question in it that can be read."""
        survey = QuestionSurvey(self.form.name, describe_fields(self._layout.sample()))
        by_id: dict[str, tuple[bytes, int]] = {}
        for position, record in self._iter_places():
            if isinstance(record, UnreadRecord):
                survey.count_unread(record)
                continue
            if record.source_id is not None:
                digest = _digest(record)
                first, earlier = by_id.setdefault(record.source_id, (digest, position))
                if first != digest:
                    places = (self._make_unread(number, "").place for number in (position, earlier))
                    survey.repeated_ids += 1
                    survey.first_repeated = survey.first_repeated or f"{record.source_id}, {' and '.join(places)}"
            survey.questions += 1
            survey.with_gold += bool(record.gold_answers)
            survey.unanswerable += find_gold_reason(record.gold_answers) is not None
            survey.with_several += len(record.gold_answers) > 1
            doubtful = [gold["text"] for gold in record.gold_answers if _DOUBTFUL.fullmatch(gold["text"])]
            if doubtful and not survey.doubtful:
                survey.first_doubtful = f"{doubtful[0][:60]!r} in {self._make_unread(position, '').place}"
            survey.doubtful += len(doubtful)
            survey.with_bare_ids += any(map(find_bare_id, record.gold_answers))
            if len(survey.preview) < PREVIEW_SIZE:
                survey.preview.append(record)
        if not survey.questions:
            raise MalformedFile(self.file, None, self._explain_failure(survey))
        return survey

    def _explain_failure(self, survey: QuestionSurvey) -> str:
        if not survey.unread:
            return "the file holds no question"
        unread = survey.unread_reasons[0]
        total = sum(reason.count for reason in survey.unread.values())
        return (
            f"none of its {total:,} records can be read in the format {self.form.name}; for {unread.count:,} of them "
            f"{unread.first.reason} (first in {unread.first.place})"
        )


def _digest(record: QuestionRecord) -> bytes:
    content = json.dumps([record.text, record.gold_answers], ensure_ascii=False)
    return blake2b(content.encode(), digest_size=16).digest()


def open_questions(
    file: Path,
    formats: Registry[QuestionFormat],
    format_name: str = AUTO,
    language: str = "en",
    columns: ColumnNames | None = None,
) -> QuestionReader:
    """Open a file of questions in one of these formats; UnknownQuestionFormat names what was seen and the formats."""
    if format_name not in (AUTO, *formats):
        raise UnknownQuestionFormat(
            f"There is no format {format_name!r} of questions; the formats are {', '.join((AUTO, *formats))}."
        )
    layout = open_layout(file, is_text_table=format_name == CSV.name, columns=columns)
    form = formats[format_name] if format_name != AUTO else _detect_format(file, layout, formats)
    if language != "en" and not form.has_languages:
        with_languages = ", ".join(name for name, other in formats.items() if other.has_languages)
        raise UnknownQuestionFormat(
            f"{file} is in the format {form.name}, which has no languages to choose from; these have some: "
            f"{with_languages}."
        )
    return QuestionReader(file, layout, form, language)


def list_claims(fields: Fields, formats: Registry[QuestionFormat]) -> list[str]:
    """The names of the formats that have this structure: of others only if ours do not; JSONL if there is no other."""
    specific = (form for form in formats.values() if form not in (JSONL, CSV))
    names = [form.name for form in specific if form.claims(fields)]
    names = [name for name in names if name not in formats.packages] or names
    return names or ([JSONL.name] if JSONL.claims(fields) else [])


def _detect_format(file: Path, layout: Layout, formats: Registry[QuestionFormat]) -> QuestionFormat:
    sample = layout.sample()
    if layout.is_table:
        # The cells of a table are texts, so that its columns say less than the fields of JSON.
        tabular = (form for form in formats.values() if form.is_tabular)
        return next((form for form in tabular if any(map(form.claims, sample))), CSV)
    claims = [list_claims(fields, formats) for fields in sample]
    names = list(dict.fromkeys(name for claimed in claims for name in claimed))
    specific = [name for name in names if name != JSONL.name]
    if len(specific) > 1:
        raise UnknownQuestionFormat(
            f"{file} has the structure of several formats ({', '.join(specific)}); choose one of them."
        )
    if names:
        return formats[(specific or names)[0]]
    if not sample:
        raise MalformedFile(file, None, _explain_emptiness(layout))
    raise UnknownQuestionFormat(
        f"{file} has the structure of no known format of questions: a record has {describe_fields(sample)}. The "
        f"formats are {', '.join(formats)}; choose one of them if it is meant."
    )


def _explain_emptiness(layout: Layout) -> str:
    """Why there is no record to detect the format from."""
    entry = next(layout.iter_entries(), None)
    if entry is None:
        return "the file holds no question"
    unread = UnreadRecord(entry.position, layout.is_line_based, entry.problem or "")
    return f"it holds no JSON object; {unread.place}: {unread.reason or describe_type(entry.value)}"
