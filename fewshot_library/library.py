"""A library version: its card, its demonstrations with embeddings, the selection; and leaks, found before freezing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from showhow.db.models import SPAN_SKILL
from showhow.db.traces.libraries import Demonstration, DemonstrationFilter, find_imported_tool
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.dpp import IntArray, Kernel, Pick
from showhow.fewshot_library.encoder import TextEncoding, load_or_encode
from showhow.fewshot_library.humaniq_names import action_symbol
from showhow.fewshot_library.selection import (
    CandidatePool,
    Selection,
    SelectionConfig,
    build_kernel,
    select_demonstrations,
)
from showhow.fewshot_library.sequence_similarity import encode_actions
from showhow.option_fields import option

_ENCODING_BATCH_SIZE = 256
"""The questions encoded at once."""


NEAR_DUPLICATE_COSINE = 0.95
"""Questions with at least this cosine similarity are near duplicates."""


_ENCODING_BATCH_SIZE = 1024


_MAX_LISTED_LEAKS = 3


@dataclass(frozen=True, slots=True)
class Leak:
    """A demonstration whose question is, or nearly is, a question of the test split."""

    demonstration: Demonstration
    tested: str
    cosine: float
    """The similarity of the two questions; 1 if they are the same question."""

    def __str__(self) -> str:
        same = self.tested == self.demonstration.full_text
        which = "is a question" if same else f"is near ({self.cosine:.3f}) the question {self.tested!r}"
        return f"{self.demonstration.question!r} {which} of a test split"


def find_leaks(
    demonstrations: Sequence[Demonstration],
    tested: Sequence[tuple[UUID, str]],
    encode: TextEncoding,
    near: float = NEAR_DUPLICATE_COSINE,
) -> list[Leak]:
    """Find the demonstrations whose question is a test question, by id or text, or a near duplicate of one.

    `tested` holds the id of each test question, and its text with its attachments; `near` is the least cosine of a near
    duplicate.
    """
    ids, texts = dict(tested), {_normalize_question(text): text for _, text in tested}
    leaks: dict[UUID, Leak] = {}
    for demonstration in demonstrations:
        same_question = ids.get(demonstration.question_id) or texts.get(_normalize_question(demonstration.full_text))
        if same_question is not None:
            leaks[demonstration.trace_id] = Leak(demonstration, same_question, 1.0)
    rest = [demonstration for demonstration in demonstrations if demonstration.trace_id not in leaks]
    if rest and tested:
        for leak in _find_near_duplicates(rest, [text for _, text in tested], encode, near):
            leaks[leak.demonstration.trace_id] = leak
    return [leaks[demonstration.trace_id] for demonstration in demonstrations if demonstration.trace_id in leaks]


def _find_near_duplicates(
    demonstrations: Sequence[Demonstration], tested: list[str], encode: TextEncoding, near: float
) -> list[Leak]:
    embeddings = encode([demonstration.full_text for demonstration in demonstrations])
    closest, closest_index = np.full(len(demonstrations), -1.0), np.zeros(len(demonstrations), np.int64)
    for start in range(0, len(tested), _ENCODING_BATCH_SIZE):
        cosines = embeddings @ encode(tested[start : start + _ENCODING_BATCH_SIZE]).T
        best = cosines.argmax(axis=1)
        highest = cosines[np.arange(len(embeddings)), best]
        closest_index = np.where(highest > closest, best + start, closest_index)
        closest = np.maximum(closest, highest)
    return [
        Leak(demonstration, tested[int(closest_index[row])], float(closest[row]))
        for row, demonstration in enumerate(demonstrations)
        if closest[row] >= near
    ]


def _normalize_question(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")


class LeakageError(ValueError):
    """Demonstrations leak questions of the test split; the message names the first leaks, and how to go on."""

    def __init__(
        self,
        leaks: Sequence[Leak],
        split: str,
        consequence: str = "so nothing was frozen",
        way_out: str = "Exclude them with a filter, or force the freeze",
    ) -> None:
        self.leaks = list(leaks)
        first = "; ".join(str(leak) for leak in self.leaks[:_MAX_LISTED_LEAKS])
        more = f"; and {len(self.leaks) - _MAX_LISTED_LEAKS} more" if len(self.leaks) > _MAX_LISTED_LEAKS else ""
        count = "1 demonstration leaks" if len(self.leaks) == 1 else f"{len(self.leaks)} demonstrations leak"
        super().__init__(f"{count} questions of the split {split!r}, {consequence}: {first}{more}. {way_out}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOptions:
    """How a library version is frozen, apart from the filter that chooses its demonstrations."""

    by: str = ""
    """The name of the user who freezes it."""
    person_id: UUID | None = None
    """The id of this user, whose role is checked; None on the command line."""
    test_split: str = option("test", "Keep out questions from this split.", label="Keep out questions from split")
    licence: str = option("", "The licence, for the card of the version.")
    note: str = option("", "A note for the card.")
    force: bool = option(
        default=False,
        help="Freeze anyway, including test questions.",
        label="Freeze anyway: includes test questions",
    )
    """The card then lists the leaks."""


def build_card(
    chosen: Sequence[Demonstration], conditions: DemonstrationFilter, options: FreezeOptions, leaks: Sequence[Leak]
) -> dict[str, Any]:
    """Build the card as JSON; raise LeakageError if there are leaks and `options.force` is not set."""
    if leaks and not options.force:
        raise LeakageError(leaks, options.test_split)
    card: dict[str, Any] = {
        "by": options.by,
        "demonstrations": len(chosen),
        "conditions": conditions.active_conditions(),
        "projects": sorted({demonstration.project for demonstration in chosen}),
        "worlds": sorted({demonstration.world for demonstration in chosen}),
        "tools": sorted({tool for demonstration in chosen for tool in demonstration.tools}),
        "authors": sorted({demonstration.author or demonstration.reasoner for demonstration in chosen}),
    }
    notes = {"licence": options.licence, "note": options.note, "leaks": [str(leak) for leak in leaks]}
    return card | {name: value for name, value in notes.items() if value}


def describe_record(record: TraceRecord) -> Demonstration:
    """The demonstration that a trace would be in a library, as it is loaded from one."""
    trace, question, project = record.trace, record.question, record.project
    called = [step for step in record.steps if step.tool is not None]
    ratings = [step.rating for step in record.steps if step.rating is not None]
    skills = {step.skill.partition("/")[0] for step in record.steps if step.skill and step.skill != SPAN_SKILL}
    imported = trace.result.details.get("humaniq")
    calls = imported.get("written") if isinstance(imported, dict) else None
    return Demonstration(
        *(trace.id, question.id, question.text, question.kind, question.split, project.name, project.world),
        *(trace.reasoner, record.author, trace.final_answer),
        tools=tuple(str(step.tool) for step in called),
        rating=mean(ratings) if ratings else None,
        skills=frozenset(skills),
        attachments=question.attachments or None,
        imported_tools=tuple(find_imported_tool(calls, step.position) for step in called),
    )


def list_actions(demonstration: Demonstration) -> tuple[str, ...]:
    """The actions whose sequences are compared: the tools that were called, by the names of an imported library."""
    names = demonstration.imported_tools or (None,) * len(demonstration.tools)
    return tuple(map(action_symbol, demonstration.tools, names))


SAME_QUESTION_COSINE = 0.999
"""Two questions above this cosine are the same question, up to white space and punctuation."""


TextReader = Callable[[Sequence[UUID]], Sequence[str]]
"""Reads all that traces show, by their ids."""


def shows_any(text: str, names: Sequence[str]) -> bool:
    """Whether the text has one of the names as whole words, whatever their case."""
    folded = " ".join(text.casefold().split())
    return any(_has_name(folded, " ".join(name.casefold().split())) for name in names)


def _has_name(text: str, name: str) -> bool:
    start = text.find(name) if name else -1
    while start >= 0:
        before, after = text[:start][-1:], text[start + len(name) :][:1]
        # Scripts without cases have no spaces between words.
        if not (_joins(before) and _joins(name[0])) and not (_joins(name[-1]) and _joins(after)):
            return True
        start = text.find(name, start + 1)
    return False


def _joins(character: str) -> bool:
    return character.isdigit() or character.lower() != character.upper()


class TextEncoder(Protocol):
    """Encodes texts to rows of unit length."""

    name: str

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class SelectedDemonstrations:
    """The selection for a question, with its demonstrations."""

    question: str
    selection: Selection
    demonstrations: list[Demonstration]
    """The demonstrations of the picks, in their order."""
    excluded: list[Demonstration]
    """Demonstrations of the same question, if they were to be left out, and those that show what is withheld."""

    def to_json(self, library: "LoadedLibrary") -> dict[str, Any]:
        """The selection as JSON."""
        return {
            "question": self.question,
            "mode": self.selection.config.mode,
            "log_det": _round_finite(self.selection.log_det),
            "filled": self.selection.filler_count,
            "left_out": [str(demonstration.trace_id) for demonstration in self.excluded],
            "picks": [
                _pick_to_json(pick, demonstration, self.selection, library)
                for pick, demonstration in zip(self.selection.picks, self.demonstrations, strict=True)
            ],
        }


class LoadedLibrary:
    """The demonstrations of one version with their embeddings; built once for many selections."""

    def __init__(
        self,
        demonstrations: Sequence[Demonstration],
        encoder: TextEncoder,
        pool: CandidatePool,
        read_texts: TextReader | None = None,
    ) -> None:
        self.demonstrations = list(demonstrations)
        self.pool = pool
        self._encoder = encoder
        self._read_texts = read_texts

    @classmethod
    def load(
        cls,
        demonstrations: Sequence[Demonstration],
        encoder: TextEncoder,
        cache_file: Path | None = None,
        read_texts: TextReader | None = None,
    ) -> "LoadedLibrary":
        """Encode the questions with their attachments, or read their embeddings from the cache, if there is one.

        Diversity is that of the actions. `read_texts` reads what demonstrations show; without it, that is their
        question and answer.
        """
        texts = [demonstration.full_text for demonstration in demonstrations]
        rows = encoder(texts) if cache_file is None else load_or_encode(cache_file, encoder.name, texts, encoder)
        actions = encode_actions(list(map(list_actions, demonstrations)))
        return cls(demonstrations, encoder, CandidatePool(rows, actions), read_texts)

    def narrow(self, sequences: Mapping[UUID, Sequence[str]]) -> "LoadedLibrary":
        """The demonstrations of these traces; diversity is that of the sequences."""
        items = [item for item, entry in enumerate(self.demonstrations) if entry.trace_id in sequences]
        demonstrations = [self.demonstrations[item] for item in items]
        actions = encode_actions([sequences[demonstration.trace_id] for demonstration in demonstrations])
        pool = CandidatePool(self.pool.embeddings[items], actions)
        return LoadedLibrary(demonstrations, self._encoder, pool, self._read_texts)

    def select(
        self,
        question: str,
        config: SelectionConfig,
        *,
        leave_out_itself: bool = False,
        withheld: Sequence[str] = (),
    ) -> SelectedDemonstrations:
        """Select demonstrations for a question, given with its attachments.

        `leave_out_itself` excludes those of the same question, `withheld` those that show one of these texts: what the
        guard of the configuration keeps back (reasoners/withheld.py).
        """
        return next(self.select_each([question], config, leave_out_itself=leave_out_itself, withheld=[withheld]))

    def select_each(
        self,
        questions: Sequence[str],
        config: SelectionConfig,
        *,
        leave_out_itself: bool = False,
        withheld: Sequence[Sequence[str]] | None = None,
    ) -> Iterator[SelectedDemonstrations]:
        """Yield the selection for each question; questions are encoded in batches."""
        withheld = withheld or [()] * len(questions)
        for start in range(0, len(questions), _ENCODING_BATCH_SIZE):
            block = questions[start : start + _ENCODING_BATCH_SIZE]
            rows, kept_back = self._encoder(block), withheld[start : start + _ENCODING_BATCH_SIZE]
            for question, row, texts in zip(block, rows, kept_back, strict=True):
                excluded = set(self._find_same_question(question, row) if leave_out_itself else ())
                excluded |= self._find_showing(texts, range(len(self.demonstrations)))
                while True:
                    left_out = config.left_out | frozenset(excluded)
                    selection = select_demonstrations(
                        self.pool, row, replace(config.seeded_by(question), left_out=left_out)
                    )
                    # Only what is picked is read as a whole, since a library may have very many long traces.
                    showing = self._find_showing(texts, [pick.item for pick in selection.picks], self._read_texts)
                    if not showing:
                        break
                    excluded |= showing
                demonstrations = [self.demonstrations[pick.item] for pick in selection.picks]
                yield SelectedDemonstrations(
                    question, selection, demonstrations, [self.demonstrations[item] for item in sorted(excluded)]
                )

    def _find_showing(
        self, texts: Sequence[str], items: Iterable[int], read_texts: TextReader | None = None
    ) -> set[int]:
        """The items that show one of the texts, in their question and answer or in what the reader reads."""
        places = [*items] if texts else []
        chosen = [self.demonstrations[item] for item in places]
        if read_texts is not None:
            shown: Iterable[str] = read_texts([entry.trace_id for entry in chosen]) if chosen else ()
        else:
            shown = (f"{entry.full_text}\n{entry.final_answer or ''}" for entry in chosen)
        return {item for item, text in zip(places, shown, strict=True) if shows_any(text, texts)}

    def _find_same_question(self, question: str, row: npt.NDArray[np.float32]) -> list[int]:
        # Embeddings of long attachments hardly show in what they differ, so these are compared as texts.
        return [
            item
            for item in np.flatnonzero(self.pool.embeddings @ row > SAME_QUESTION_COSINE).tolist()
            if not self.demonstrations[item].attachments
            or _normalize_question(self.demonstrations[item].full_text) == _normalize_question(question)
        ]

    def list_sequences(self) -> list[tuple[tuple[str, ...], IntArray]]:
        """The distinct action sequences in the order of the pool, each with the indexes of its demonstrations."""
        groups = self.pool.actions.groups
        members = [groups.order[groups.group_slice(group)] for group in range(len(groups))]
        return [(list_actions(self.demonstrations[int(indexes[0])]), indexes) for indexes in members]

    def build_kernel(self, chosen: SelectedDemonstrations) -> Kernel:
        """The DPP kernel for the question of a selection."""
        return build_kernel(self.pool, self._encoder([chosen.question])[0], chosen.selection.config)


def _pick_to_json(
    pick: Pick, demonstration: Demonstration, selection: Selection, library: LoadedLibrary
) -> dict[str, Any]:
    runner_up = None if pick.runner_up is None else library.demonstrations[pick.runner_up]
    return {
        "id": str(demonstration.trace_id),
        "question": demonstration.question,
        "tools": list(demonstration.tools),
        "actions": list(list_actions(demonstration)),
        "relevance": round(float(selection.cosines[pick.item]), 6),
        "novelty": round(pick.novelty, 6),
        "gain": _round_finite(pick.gain),
        "filled": pick.is_filler,
        "runner_up": None if runner_up is None else {"id": str(runner_up.trace_id), "question": runner_up.question},
        "lead": None if pick.lead is None else _round_finite(pick.lead),
    }


def _round_finite(number: float) -> float | None:
    # The log of a vanishing determinant is minus infinity, which JSON cannot represent.
    return round(number, 6) if np.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class LibraryDifference:
    """The demonstrations added and removed, compared by trace id, in the order of their version."""

    added: list[Demonstration]
    removed: list[Demonstration]
    kept: int


def compare_versions(before: Sequence[Demonstration], after: Sequence[Demonstration]) -> LibraryDifference:
    """Compare an earlier with a later version."""
    old, new = ({demonstration.trace_id for demonstration in version} for version in (before, after))
    return LibraryDifference(
        added=[demonstration for demonstration in after if demonstration.trace_id not in old],
        removed=[demonstration for demonstration in before if demonstration.trace_id not in new],
        kept=len(old & new),
    )


@dataclass(frozen=True, slots=True)
class LibraryStatistics:
    """Counts over demonstrations; the dictionaries omit zero counts."""

    demonstrations: int
    lengths: dict[int, int]
    """Demonstrations by number of actions."""
    tools: dict[str, int]
    """Actions by tool."""
    kinds: dict[str, int]
    ratings: dict[int, int]
    """Demonstrations by mean rating, rounded to whole stars."""
    unrated: int
    worlds: dict[str, int]
    people: int
    models: int
    sequences: int
    """Distinct sequences of actions."""
    unused_tools: list[str]
    """Tools that no demonstration uses."""
    missing_kinds: list[str]
    """Kinds of questions in the projects that no demonstration answers."""

    def to_json(self) -> dict[str, Any]:
        """The counts for programs."""
        return asdict(self)


def compute_statistics(
    demonstrations: Sequence[Demonstration], *, tools: Iterable[str] = (), kinds: Iterable[str] = ()
) -> LibraryStatistics:
    """Count demonstrations; `tools` and `kinds` list all that exist, to report those without a demonstration."""
    tool_counts = Counter(tool for demonstration in demonstrations for tool in demonstration.tools)
    kind_counts = Counter(demonstration.kind for demonstration in demonstrations if demonstration.kind is not None)
    people = sum(demonstration.reasoner == "human" for demonstration in demonstrations)
    rated = [round(demonstration.rating) for demonstration in demonstrations if demonstration.rating is not None]
    return LibraryStatistics(
        demonstrations=len(demonstrations),
        lengths=dict(sorted(Counter(len(demonstration.tools) for demonstration in demonstrations).items())),
        tools=dict(tool_counts.most_common()),
        kinds=dict(kind_counts.most_common()),
        ratings=dict(sorted(Counter(rated).items())),
        unrated=len(demonstrations) - len(rated),
        worlds=dict(Counter(demonstration.world for demonstration in demonstrations).most_common()),
        people=people,
        models=len(demonstrations) - people,
        sequences=len(encode_actions(list(map(list_actions, demonstrations))).sequences),
        unused_tools=[tool for tool in tools if tool not in tool_counts],
        missing_kinds=[kind for kind in kinds if kind not in kind_counts],
    )
