"""Opens question files: finds their layout and format, and reads them record by record.

    reader = open_questions(file)
    survey = reader.survey()
    records = reader.iter_records()

A layout is JSON Lines, one JSON document (a list, or an object with a list of questions) or CSV; each may be gzipped.
JSON Lines and CSV are read line by line, as often as they are iterated, and never held in memory.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.datasets.gold_names import find_bare_id
from evaluation.datasets.record import (
    CSV,
    JSONL,
    TEXT_NAMES,
    Fields,
    QuestionFormat,
    QuestionRecord,
    UnreadableRecord,
    describe_type,
    parse_cells,
    parse_record,
)
from worlds.folder import WorldError
from worlds.input_files import (
    MalformedFile,
    decode_line,
    iter_json_list,
    iter_lines,
    iter_raw_lines,
    open_bytes,
    parse_json,
    read_text_file,
    reading,
)

AUTO = "auto"
"""The format is detected from the structure of the first records."""
SAMPLE_SIZE = 20
"""The records that a format is detected from."""
LIST_NAMES = ("questions", "Questions")
"""The fields of a JSON document that may hold its list of questions."""
PREVIEW_SIZE = 5
MAX_REASONS = 1_000
"""The reasons why records cannot be read that are told apart."""
MAX_SHOWN_FIELDS = 12
MAX_CELL_CHARACTERS = 16 * 1024 * 1024
_PEEK_BYTES = 4096


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
    with_several: int = 0
    """The number of questions with several gold answers, all of which a correct answer names."""
    with_bare_ids: int = 0
    """The number of questions with a gold answer that is an id, whose names the world's graph may have."""
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """One record of a file as it was parsed, or the reason why it is none."""

    position: int
    value: Any = None
    problem: str | None = None


class QuestionReader:
    """The questions of one file in one format."""

    def __init__(self, file: Path, layout: "_Layout", form: QuestionFormat, language: str) -> None:
        self.file, self.form = file, form
        self._layout, self._language = layout, language

    def __iter__(self) -> Iterator[QuestionRecord | UnreadRecord]:
        for entry in self._layout.iter_entries():
            problem = entry.problem
            if problem is None and not isinstance(entry.value, dict):
                problem = f"a JSON object is required, not {describe_type(entry.value)}"
            if problem is None:
                try:
                    yield parse_record(self.form, entry.value, self._language)
                except UnreadableRecord as error:
                    problem = str(error)
            if problem is not None:
                yield UnreadRecord(entry.position, self._layout.is_line_based, problem)

    def iter_records(self, split: str | None = None) -> Iterator[QuestionRecord]:
        """The questions that can be read, all of them in this split, or each in its own."""
        records = (record for record in self if isinstance(record, QuestionRecord))
        return (replace(record, split=split) for record in records) if split else records

    def survey(self) -> QuestionSurvey:
        """Read the whole file; MalformedFile if there is no question in it that can be read."""
        survey = QuestionSurvey(self.form.name, _describe_fields(self._layout.sample()))
        for record in self:
            if isinstance(record, UnreadRecord):
                survey.count_unread(record)
                continue
            survey.questions += 1
            survey.with_gold += bool(record.gold_answers)
            survey.with_several += len(record.gold_answers) > 1
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


def open_questions(
    file: Path, formats: Mapping[str, QuestionFormat], format_name: str = AUTO, language: str = "en"
) -> QuestionReader:
    """Open a file of questions in one of these formats; UnknownQuestionFormat names what was seen and the formats."""
    if format_name not in (AUTO, *formats):
        raise UnknownQuestionFormat(
            f"There is no format {format_name!r} of questions; the formats are {', '.join((AUTO, *formats))}."
        )
    is_csv = format_name == CSV.name or (
        format_name == AUTO and file.name.removesuffix(".gz").lower().endswith(f".{CSV.name}")
    )
    layout = _CsvLayout(file) if is_csv else _open_json(file)
    form = CSV if is_csv else formats[format_name] if format_name != AUTO else _detect_format(file, layout, formats)
    if language != "en" and not form.has_languages:
        with_languages = ", ".join(name for name, other in formats.items() if other.has_languages)
        raise UnknownQuestionFormat(
            f"{file} is in the format {form.name}, which has no languages to choose from; these have some: "
            f"{with_languages}."
        )
    return QuestionReader(file, layout, form, language)


def list_claims(fields: Fields, formats: Mapping[str, QuestionFormat]) -> list[str]:
    """The names of the formats that have this structure; JSONL only if there is no other."""
    specific = (form for form in formats.values() if form not in (JSONL, CSV))
    names = [form.name for form in specific if form.claims(fields)]
    return names or ([JSONL.name] if JSONL.claims(fields) else [])


def _detect_format(file: Path, layout: "_Layout", formats: Mapping[str, QuestionFormat]) -> QuestionFormat:
    sample = layout.sample()
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
        raise MalformedFile(file, None, layout.explain_emptiness())
    raise UnknownQuestionFormat(
        f"{file} has the structure of no known format of questions: a record has {_describe_fields(sample)}. The "
        f"formats are {', '.join(formats)}; choose one of them if it is meant."
    )


def _describe_fields(sample: Sequence[Fields]) -> str:
    if not sample:
        return "no fields"
    names = [f"{name!r} ({describe_type(value)})" for name, value in islice(sample[0].items(), MAX_SHOWN_FIELDS)]
    return ", ".join(names) + (" and more" if len(sample[0]) > MAX_SHOWN_FIELDS else "")


class _Layout(ABC):
    """The records of a file, whatever their format."""

    is_line_based = True

    def __init__(self, file: Path) -> None:
        self.file = file

    @abstractmethod
    def iter_entries(self) -> Iterator[_Entry]:
        """Read the file from its beginning."""

    def sample(self) -> list[dict[str, Any]]:
        """The first records that are JSON objects."""
        objects = (entry.value for entry in self.iter_entries() if isinstance(entry.value, dict))
        return list(islice(objects, SAMPLE_SIZE))

    def explain_emptiness(self) -> str:
        """Why the sample is empty."""
        entry = next(self.iter_entries(), None)
        if entry is None:
            return "the file holds no question"
        unread = UnreadRecord(entry.position, self.is_line_based, entry.problem or "")
        return f"it holds no JSON object; {unread.place}: {unread.reason or describe_type(entry.value)}"


class _JsonLines(_Layout):
    def iter_entries(self) -> Iterator[_Entry]:
        for number, raw in iter_raw_lines(self.file):
            if raw.strip():
                yield self._parse_line(number, raw)

    def _parse_line(self, number: int, raw: bytes) -> _Entry:
        try:
            return _Entry(number, parse_json(decode_line(raw, self.file, number), self.file, number))
        except MalformedFile as error:
            return _Entry(number, problem=error.reason)


class _JsonList(_Layout):
    """A list, which is read element by element."""

    is_line_based = False

    def iter_entries(self) -> Iterator[_Entry]:
        return (_Entry(number, value) for number, (_, value) in enumerate(iter_json_list(self.file), 1))


class _JsonObject(_Layout):
    """An object with a list of questions; it is parsed once and held in memory."""

    is_line_based = False

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        document = parse_json(read_text_file(file), file, None)
        name = next((name for name in LIST_NAMES if isinstance(document, dict) and name in document), None)
        if name is not None:
            document = document[name]
        if not isinstance(document, list):
            seen = f"an object with {_describe_fields([document])}" if isinstance(document, dict) else "no list"
            raise MalformedFile(file, None, f"a list of questions is required, or an object with one; it is {seen}")
        self._records: list[Any] = document

    def iter_entries(self) -> Iterator[_Entry]:
        return (_Entry(number, value) for number, value in enumerate(self._records, 1))


class _CsvLayout(_Layout):
    def iter_entries(self) -> Iterator[_Entry]:
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        reader = csv.reader((text + "\n" for _, text in iter_lines(self.file)), strict=True)
        header: list[str] | None = None
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield _Entry(reader.line_num, problem=f"invalid CSV: {error}")
                continue
            if row is None:
                return
            if not "".join(row).strip() and len(row) <= 1:
                continue
            if header is None:
                header = self._parse_header(row)
            elif len(row) != len(header):
                yield _Entry(reader.line_num, problem=f"{len(row)} cells under {len(header)} columns")
            else:
                yield _Entry(reader.line_num, parse_cells(header, row))

    def _parse_header(self, row: list[str]) -> list[str]:
        names = [name.strip().lower() for name in row]
        if not any(name in names for name in TEXT_NAMES):
            raise MalformedFile(self.file, 1, f"no column is called {' or '.join(TEXT_NAMES)}")
        if len(set(names)) != len(names):
            raise MalformedFile(self.file, 1, "two columns have the same name")
        return names


def _open_json(file: Path) -> _Layout:
    """JSON Lines, unless the file begins with a list, or with an object that holds one or takes several lines."""
    if _peek(file).startswith(b"["):
        return _JsonList(file)
    lines = _JsonLines(file)
    first, *others = list(islice(lines.iter_entries(), SAMPLE_SIZE)) or [_Entry(1)]
    if isinstance(first.value, dict):
        return _JsonObject(file) if any(isinstance(first.value.get(name), list) for name in LIST_NAMES) else lines
    # Objects follow a broken first line. In a document at most the last record is a line without a comma.
    objects = sum(isinstance(entry.value, dict) for entry in others)
    return lines if first.problem is None or objects > 1 or (others and objects == len(others)) else _JsonObject(file)


def _peek(file: Path) -> bytes:
    with open_bytes(file) as stream, reading(file):
        return stream.read(_PEEK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
