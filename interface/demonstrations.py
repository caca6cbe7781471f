"""Libraries of demonstrations, and those that are selected for a question, as prompts."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.traces.libraries import Demonstration, DemonstrationFilter
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.few_shot_prompt import write_prompt_messages, write_prompt_text
from showhow.fewshot_library.formats.react import record_to_transcript
from showhow.fewshot_library.formats.react_text import format_transcript
from showhow.fewshot_library.library import (
    FreezeOptions,
    LoadedLibrary,
    SelectedDemonstrations,
    describe_record,
    list_actions,
)
from showhow.fewshot_library.selection import SelectionConfig
from showhow.interface.errors import ShowhowError, in_one_sentence
from showhow.interface.homes import Home, find_home
from showhow.reasoners.withheld import list_withheld

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED_REFUSALS = 3
"""The records of a file whose reasons an error lists."""


@dataclass(frozen=True)
class PickedExample:
    """A demonstration that was selected for a question, and why."""

    question: str
    """Its question."""
    answer: str | None
    actions: tuple[str, ...]
    """The tools that it calls, in order; diversity is that of these sequences."""
    kind: str | None
    """The kind of its question."""
    id: str
    """The id of its trace."""
    relevance: float
    """The cosine of its question with the one that is asked."""
    novelty: float
    """What of its actions no earlier pick has, from 0 to 1."""
    gain: float
    """By how much it raises the log-determinant of the picks."""
    is_filler: bool
    """Whether it was selected by relevance alone, for lack of demonstrations with other actions."""
    runner_up: str | None
    """The question of the demonstration that was next best for its place."""
    lead: float | None
    """By how much more it raised the log-determinant than that one."""
    record: TraceRecord = field(repr=False)

    @property
    def explanation(self) -> str:
        """Why it was selected, in one sentence."""
        gain = "selected by relevance alone" if self.is_filler else f"raises log det by {self.gain:.3f}"
        behind = f"; next best, {self.lead:.3f} behind: {self.runner_up}" if self.runner_up and self.lead else ""
        return f"relevance {self.relevance:.3f}, novelty {self.novelty:.3f}, {gain}{behind}"

    def as_text(self) -> str:
        """The trace as one text with Thought, Action, Action Input and Observation."""
        return format_transcript(record_to_transcript(self.record).strip_values())


class Picks(Sequence[PickedExample]):
    """The demonstrations that were selected for a question, the first pick first."""

    def __init__(
        self, selected: SelectedDemonstrations, library: LoadedLibrary, records: Sequence[TraceRecord]
    ) -> None:
        self.question = selected.question
        self.mode = selected.selection.config.mode
        self.log_det = selected.selection.log_det
        """The log-determinant of the picks; minus infinity if it vanishes."""
        self.left_out = [demonstration.question for demonstration in selected.excluded]
        """The questions of demonstrations that were left out, since they ask the same."""
        self._picks = [
            PickedExample(
                *(demonstration.question, demonstration.final_answer, list_actions(demonstration), demonstration.kind),
                id=str(demonstration.trace_id),
                relevance=float(selected.selection.cosines[pick.item]),
                novelty=pick.novelty,
                gain=pick.gain,
                is_filler=pick.is_filler,
                runner_up=None if pick.runner_up is None else library.demonstrations[pick.runner_up].question,
                lead=pick.lead,
                record=record,
            )
            for pick, demonstration, record in zip(
                selected.selection.picks, selected.demonstrations, records, strict=True
            )
        ]

    @overload
    def __getitem__(self, index: int) -> PickedExample: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PickedExample]: ...

    def __getitem__(self, index: int | slice) -> PickedExample | Sequence[PickedExample]:
        return self._picks[index]

    def __len__(self) -> int:
        return len(self._picks)

    def __repr__(self) -> str:
        return f"Picks({[pick.question for pick in self]!r})"

    def as_messages(self, instruction: str = DEFAULT_INSTRUCTION, question: str | None = None) -> list[dict[str, Any]]:
        """The prompt as messages of OpenAI's API: the instruction, the demonstrations with their calls, the question.

        Another `question` than the one of the selection may be asked; "" for the demonstrations alone.
        """
        return write_prompt_messages(self._records, instruction, self.question if question is None else question)

    def as_text(self, instruction: str = DEFAULT_INSTRUCTION, question: str | None = None) -> str:
        """The prompt as one text with Thought, Action, Action Input and Observation."""
        return write_prompt_text(self._records, instruction, self.question if question is None else question)

    def as_dspy(self) -> list[dict[str, Any]]:
        """The fields of examples of DSPy, as its ReAct has them: question, trajectory and answer.

        `[dspy.Example(**fields).with_inputs("question") for fields in picks.as_dspy()]` are demos of a module.
        """
        from showhow.fewshot_library.formats.training_files import record_to_example  # noqa: PLC0415 - others do without it

        return [record_to_example(record) for record in self._records]

    def to_frame(self) -> "pd.DataFrame":
        """A row for each pick, with the fields of PickedExample but the record."""
        import pandas as pd  # noqa: PLC0415 - it takes half a second to import

        names = [name for name in PickedExample.__dataclass_fields__ if name != "record"]
        return pd.DataFrame([[getattr(pick, name) for name in names] for pick in self], columns=names)

    @property
    def _records(self) -> list[TraceRecord]:
        return [pick.record for pick in self]


class Library:
    """Demonstrations to select from: a version of a home, or the traces of a file.

    >>> library = Library.load("village:1", home=home)
    >>> picks = library.select("Who are the uncles of Ada?", k=2)
    >>> len(picks), picks[0].explanation.split()[0]
    (2, 'relevance')
    """

    def __init__(  # noqa: PLR0913 - called here only
        self,
        demonstrations: Sequence[Demonstration],
        load_records: Callable[[Sequence[UUID]], list[TraceRecord]],
        open_library: Callable[[], LoadedLibrary],
        *,
        reference: str | None = None,
        home: Home | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        """For `load`, `of_records` and `store`."""
        self._demonstrations = demonstrations
        self._load_records = load_records
        self._open = open_library
        self.reference = reference
        """NAME:NUMBER of a version; None for traces that no home has."""
        self.home = home
        self.remarks = list(remarks)
        """Sentences about records of the file that were refused, or are unusual."""

    @classmethod
    @in_one_sentence()
    def load(cls, source: str | os.PathLike[str], *, format: str = "auto", home: Home | None = None) -> "Library":  # noqa: A002 - as the verbs call it
        """Load a file of traces, in any format that `showhow traces import` reads, or a version NAME or NAME:NUMBER.

        A file needs no home; all its traces are demonstrations, whatever their status.
        """
        path = Path(source).expanduser()
        if path.is_file():
            return cls._read(path, format)
        if not isinstance(source, str) or len(path.parts) > 1 or path.suffix:
            raise ShowhowError(f"there is no file {path}")
        chosen_home = find_home(home)
        version, loaded = chosen_home.services.open_library(source)
        return cls._of_version(chosen_home, f"{version.name}:{version.number}", loaded)

    @classmethod
    def _of_version(cls, home: Home, reference: str, loaded: LoadedLibrary) -> "Library":
        from showhow.db.traces.traces import load_traces  # noqa: PLC0415 - a file needs no store

        def load_records(ids: Sequence[UUID]) -> list[TraceRecord]:
            with home.services.database.read() as session:
                return list(load_traces(session, ids))

        return cls(loaded.demonstrations, load_records, lambda: loaded, reference=reference, home=home)

    @classmethod
    def _read(cls, path: Path, format_name: str) -> "Library":
        from showhow.fewshot_library.formats import read_traces  # noqa: PLC0415 - a version needs no reader
        from showhow.fewshot_library.formats.format import RecordRemark  # noqa: PLC0415 - as above

        records: list[TraceRecord] = []
        remarks: list[str] = []
        for result in read_traces(path, format_name):
            if isinstance(result, TraceRecord):
                records.append(result)
            elif isinstance(result, RecordRemark):
                remarks.append(f"{result.place}: {result.text}")
            else:
                remarks.append(f"{result.place} was refused: {result.reason}")
        if not records:
            reasons = "; ".join(remarks[:MAX_LISTED_REFUSALS])
            raise ShowhowError(f"{path} has no trace that can be read{f': {reasons}' if reasons else ''}")
        return cls.of_records(records, remarks=remarks)

    @classmethod
    def of_records(
        cls, records: Sequence[TraceRecord], *, home: Home | None = None, remarks: Sequence[str] = ()
    ) -> "Library":
        """For `World.demonstrations`: a library of traces that are in memory."""
        by_id = {record.trace.id: record for record in reversed(records)}
        demonstrations = [describe_record(record) for record in reversed(by_id.values())]

        def open_library() -> LoadedLibrary:
            return LoadedLibrary.load(demonstrations, _encoder(home))

        return cls(demonstrations, lambda ids: [by_id[key] for key in ids], open_library, home=home, remarks=remarks)

    def __len__(self) -> int:
        return len(self._demonstrations)

    def __iter__(self) -> Iterator[str]:
        return iter(self.questions)

    def __repr__(self) -> str:
        return f"Library({self.reference or 'traces'!r}, {len(self)} demonstrations)"

    @property
    def questions(self) -> list[str]:
        """The question of each demonstration."""
        return [demonstration.question for demonstration in self._demonstrations]

    @cached_property
    def _loaded(self) -> LoadedLibrary:
        return self._open()

    @in_one_sentence()
    def select(
        self, question: str, k: int = 3, mode: str = "dpp", *, leave_out_itself: bool = False, **settings: Any
    ) -> Picks:
        """Select k demonstrations that are relevant to the question, and whose actions differ.

        `mode` is dpp, relevance, diversity, mmr, random, static or sample. `settings` are alpha (the weight of
        relevance), gamma and distance (how similarity falls with the distance of actions), exchange, balance (of mmr),
        seed, and guard (entities leaves out demonstrations that name what the question names). `leave_out_itself` never
        selects the question itself.
        """
        config = _build_config(k, mode, settings)
        withheld = list_withheld(config.guard, question)
        selected = self._loaded.select(question, config, leave_out_itself=leave_out_itself, withheld=withheld)
        records = self._load_records([demonstration.trace_id for demonstration in selected.demonstrations])
        return Picks(selected, self._loaded, records)

    @in_one_sentence()
    def store(
        self, name: str, *, home: Home | None = None, licence: str = "", note: str = "", test_split: str = "test"
    ) -> "Library":
        """Add the traces to a home, and freeze them as the next version of a library that runs can use.

        ShowhowError if a question is, or nearly is, one of the test split there.
        """
        from getpass import getuser  # noqa: PLC0415 - selecting needs no store

        from showhow.db.storage.merge import TraceMerger  # noqa: PLC0415 - as above

        chosen_home = find_home(home or self.home)
        services = chosen_home.services
        records = self._load_records([demonstration.trace_id for demonstration in self._demonstrations])
        with services.database.begin() as session:
            merger = TraceMerger()
            for record in records:
                merger.merge(session, record)
            merger.end_batch(session)
        options = FreezeOptions(by=getuser(), licence=licence, note=note, test_split=test_split)
        version = services.freeze_demonstrations(name, self._demonstrations, DemonstrationFilter(), options)
        return Library.load(f"{version.name}:{version.number}", home=chosen_home)


def _build_config(k: int, mode: str, settings: Mapping[str, Any]) -> SelectionConfig:
    names = [name for name in SelectionConfig.__dataclass_fields__ if name not in ("k", "mode", "left_out")]
    if unknown := sorted(settings.keys() - set(names)):
        raise ShowhowError(f"there is no setting {unknown[0]!r} of selections; there are {', '.join(names)}")
    return SelectionConfig(k, mode, **settings)


def _encoder(home: Home | None) -> Any:
    """The encoder of the home, or of the settings, without opening a store."""
    return (home or find_home()).services.encoder
