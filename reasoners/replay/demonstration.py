"""A demonstration as it can be followed: look-ups with the origins of their arguments, slots, and a derivation.

A look-up asks one thing ("director", "When was ... born?", a query) of a subject, and observes values. Its subject is a
slot of the question or the values of an earlier look-up; its ask may hold a word of the question, which then is a slot
as well. A way is the calls by which a look-up was made; another look-up with such an ask can be made in the same way.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from showhow.db.models import Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.provenance import (
    DATE_PATTERN,
    TYPED_ORIGIN,
    ArgumentPart,
    Origin,
    divide_at_names,
    resolve_origin,
    split_argument,
)
from showhow.reasoners.replay.derivations import (
    ALL,
    SEPARATOR,
    SHARED,
    Evidence,
    LookUpRows,
    Mismatch,
    ReplayValue,
    Values,
    list_values,
    recognize_derivation,
    unique_values,
)
from showhow.worlds.lexicon.english import has_content, list_words, phrase_key
from showhow.worlds.text_normalization import normalize_name

NAME, ID, WORD, ASK, LINK = "\x00", "\x01", "\x02", "\x03", "\x04"
"""The places for the name and the id of a subject, for the word that is a slot, for a whole ask, and for a value of the
call before, whose pointer follows; in that, * stands for the relation that the ask names."""
MAX_RELATION_WORDS = 4
"""The most words of a relation that is a slot."""
CONTEXT_WORDS = 2
"""The words before a value by which a sentence tells what it is."""
Fillers = Mapping[int, str]
"""The texts of slots by their starts in the demonstration's question."""


class QuestionSlot(NamedTuple):
    """A span of the question that an argument or the answer came from; a relation is a word for what is asked."""

    start: int
    end: int
    text: str
    is_relation: bool = False


class WayCall(NamedTuple):
    """One call of a way: its tool, and of each argument the name, the content, and whether it is a list of it."""

    tool: str
    arguments: tuple[tuple[str, str, bool], ...]


class LookUpWay(NamedTuple):
    """The calls of a look-up, and the list of its last observation with the values; None if it has sentences."""

    calls: tuple[WayCall, ...]
    path: str | None


@dataclass(eq=False, slots=True)
class LookUp:
    """One look-up: what is asked of which subject, and what was observed."""

    subject: "int | LookUp"
    """The start of a slot, or the earlier look-up whose values are the subjects."""
    ask: str
    """With NAME or ID in place of the subject, and WORD in place of the word that is a slot."""
    word: int | None = None
    """The start of the slot whose text is the ask's word."""
    ways: dict[LookUpWay, None] = field(default_factory=dict)
    observed: dict[str, tuple[ReplayValue, Values]] = field(default_factory=dict)
    """Each subject with its values."""
    contexts: set[str] = field(default_factory=set)
    """The words before a value in the sentence that it was read in."""

    @property
    def root(self) -> int:
        """The slot that its chain of look-ups begins with."""
        return self.subject.root if isinstance(self.subject, LookUp) else self.subject

    @property
    def rows(self) -> LookUpRows:
        """What was observed."""
        return list(self.observed.values())

    def add(self, subject: ReplayValue, values: Values) -> None:
        """Add observed values of a subject."""
        subject, known = self.observed.get(subject.key, (subject, ()))
        self.observed[subject.key] = subject, unique_values([(subject, [*known, *values])])

    @property
    def is_label(self) -> bool:
        """Whether the ask is the label of a relation, without a place for the subject."""
        return NAME not in self.ask and ID not in self.ask

    def fill(self, fillers: Fillers) -> str:
        """The ask with these texts in the slots."""
        return self.ask if self.word is None else self.ask.replace(WORD, fillers[self.word])

    def key(self, fillers: Fillers) -> str:
        """The filled ask as it is compared: in the singular, with its places."""
        return " ".join(phrase_key(self.fill(fillers).replace(NAME, " 0 ").replace(ID, " 1 ")))


@dataclass(frozen=True, slots=True)
class Program:
    """A demonstration as it can be followed; one with a `problem` can only be repeated on its own question."""

    id: UUID
    question: str
    steps: tuple[Step, ...]
    answer: str
    slots: tuple[QuestionSlot, ...] = ()
    """In the order of the question."""
    lookups: tuple[LookUp, ...] = ()
    given: int | None = None
    """The start of the slot whose text is compared with observed values."""
    derivation: str | None = None
    identifiers: tuple[tuple[str, str], ...] = ()
    """The calls that gave the id of a name: tool and argument."""
    problem: str | None = None
    """Why it cannot be followed, as a clause."""
    part: int | None = None
    """The place of the look-up that it has alone of the demonstration; None for all."""

    @property
    def key(self) -> str:
        """What it is called by: the id of the demonstration, with the part."""
        return str(self.id) if self.part is None else f"{self.id}/{self.part}"

    @property
    def shows_ids(self) -> bool:
        """Whether its answer has the id of an entity after the name."""
        return any(f"({value.id})" in self.answer for lookup in self.lookups for value in unique_values(lookup.rows))

    @property
    def texts(self) -> dict[int, str]:
        """The texts of its own slots."""
        return {slot.start: slot.text for slot in self.slots}

    @property
    def names(self) -> list[QuestionSlot]:
        """The slots that are names, dates or numbers."""
        return [slot for slot in self.slots if not slot.is_relation]

    def signature(self, fillers: Fillers) -> tuple[Any, ...]:
        """What is asked apart from names, with these texts in the slots."""
        places: dict[Any, int] = {slot.start: place for place, slot in enumerate(self.names)}
        places |= {lookup: -1 - place for place, lookup in enumerate(self.lookups)}
        return (*((places[lookup.subject], lookup.key(fillers)) for lookup in self.lookups), self.derivation)

    def evidence(self, rows: Mapping[LookUp, LookUpRows], fillers: Fillers, **options: bool) -> Evidence:
        """What the answer is derived from: the values of the look-ups that no other look-up takes."""
        taken = _subjects(self)
        results = [(fillers[lookup.root], rows[lookup]) for lookup in self.lookups if lookup not in taken]
        return Evidence(results, None if self.given is None else ReplayValue(fillers[self.given]), **options)


def _is_instrument(origin: Origin) -> bool:
    """Whether it carries the same look-up on: a query, the address of a page, a relation."""
    pointer: str = origin.get("pointer", "")
    return pointer.endswith(("/sparql", "/address")) or pointer.startswith("/relations/")


def _is_id(origin: Origin) -> bool:
    return str(origin.get("pointer", "")).endswith(("/id", "/entity", "/value"))


class _ReadStep(NamedTuple):
    """What a step asks of whom; its calls are those that gave its query, address or relation, and its own."""

    root: int | LookUp
    subject: ReplayValue
    ask: str
    calls: tuple[WayCall, ...]


class TraceCompiler:
    """Compiles the steps of one trace."""

    def __init__(self, record: TraceRecord) -> None:
        self._question, self._answer = record.question.full_text, record.trace.final_answer or ""
        self.program = Program(record.trace.id, self._question, tuple(record.steps), self._answer)
        self._steps = {step.position: step for step in record.steps if step.tool and step.data is not None}
        self._data = {position: step.data or {} for position, step in self._steps.items()}
        places = _find_names(self._steps.values())
        self._parts = {
            (p, name): _split(step, name, places) for p, step in self._steps.items() for name in step.arguments
        }
        self._origins = [origin for parts in self._parts.values() for _, origin in parts]
        self._read: dict[int, _ReadStep] = {}
        self._lookup_of_step: dict[int, LookUp] = {}
        self._lookups: dict[Any, LookUp] = {}
        self._identifiers: dict[tuple[str, str], None] = {}
        self._names: set[tuple[int, int]] = set()

    def compile(self) -> Program:
        """Return the program without its derivation; Mismatch for the first step that is not understood."""
        instruments = {origin["step"] for origin in self._origins if _is_instrument(origin)}
        for position, data in self._data.items():
            step = self._read[position] = self._read_step(position)
            # A query that was written, but not run, holds no values.
            paths = [path for path, own in list_values(data).items() if own or not data[path[1:]]]
            if step.ask and position not in instruments and (paths or "sentences" in data):
                self._add_look_up(position, step, None if "sentences" in data else paths[0])
        if not self._lookups:
            raise Mismatch("it has no look-up")
        spans = {(*span, False) for span in self._names}
        for lookup in self._lookups.values():
            if (word := self._find_word(lookup.ask)) is not None:
                lookup.word, end, lookup.ask = word
                spans.add((lookup.word, end, True))
        slots = tuple(QuestionSlot(start, end, self._question[start:end], own) for start, end, own in sorted(spans))
        lookups = tuple(self._lookups.values())
        return replace(self.program, slots=slots, lookups=lookups, identifiers=tuple(self._identifiers))

    def _read_step(self, position: int) -> _ReadStep:
        """What a step asks of whom: constants are its ask, and names and values its subject."""
        before: tuple[WayCall, ...] = ()
        subjects, ask, arguments = {}, "", []
        for name, value in self._steps[position].arguments.items():
            content = ""
            for text, origin in self._parts[position, name]:
                if origin["from"] == "typed":
                    content += text
                    continue
                if origin["from"] == "step" and origin["step"] not in self._read:
                    raise Mismatch(f"the {name} of step {position} comes from a step without data")
                if _is_instrument(origin):
                    root, subject, earlier_ask, before = self._read[origin["step"]]
                    ask = earlier_ask or self._label(origin) or ask
                    content = LINK + re.sub(r"^/relations/\d+/", "/relations/*/", origin["pointer"])
                else:
                    root, subject = self._find_subject(origin, f"the {name} of step {position}")
                    content += ID if _is_id(origin) else NAME
                subjects[root, normalize_name(subject.text)] = root, subject
            if LINK not in content and re.search(r"[^\W\d_]", content):
                ask, content = content, ASK
            arguments.append((name, content, isinstance(value, list)))
        if len(subjects) != 1:
            raise Mismatch(f"step {position} has {len(subjects) or 'no'} subjects")
        calls = (*before, WayCall(str(self._steps[position].tool), tuple(arguments)))
        return _ReadStep(*next(iter(subjects.values())), ask, calls)

    def _label(self, origin: Origin) -> str:
        """The label of the relation that an argument comes from; none for queries and addresses."""
        item = origin["pointer"].rpartition("/")[0]
        is_relation = item.startswith("/relations/")
        return resolve_origin(origin | {"pointer": f"{item}/label"}, "", self._data) if is_relation else ""

    def _find_subject(self, origin: Origin, argument: str) -> tuple[int | LookUp, ReplayValue]:
        """The slot or the look-up that a part of an argument comes from, with its value."""
        if origin["from"] == "question":
            self._names.add((origin["start"], origin["end"]))
            return origin["start"], ReplayValue(self._question[origin["start"] : origin["end"]])
        value, step, lookup = (
            self._value_at(origin),
            self._read[origin["step"]],
            self._lookup_of_step.get(origin["step"]),
        )
        if lookup is not None:
            # An observation may repeat the name of its subject.
            subject, _ = lookup.observed.get(value.key, (None, ()))
            return (lookup, value) if subject is None else (lookup.subject, subject)
        tool, ((argument_name, content, _), *_) = step.calls[-1]
        if _is_id(origin) and content in (NAME, ASK):
            self._identifiers[tool, argument_name] = None
        if _is_id(origin) or normalize_name(value.text) in normalize_name(step.subject.text):
            return step.root, step.subject
        # A result of a search is a value of a look-up of the same subject, if there is one.
        lookup = next((lookup for lookup in self._lookups.values() if lookup.subject == step.root), None)
        if lookup is None:
            raise Mismatch(f"{argument} is a result of a search, and only a reader can tell which results count")
        lookup.add(step.subject, [value])
        return lookup, value

    def _value_at(self, origin: Origin) -> ReplayValue:
        text = resolve_origin(origin, self._question, self._data)
        items = [value for values in list_values(self._data[origin["step"]]).values() for value in values]
        return next((value for value in items if text in (value.id, value.text)), ReplayValue(text))

    def _add_look_up(self, position: int, step: _ReadStep, path: str | None) -> None:
        data = self._data[position]
        lookup = self._lookups.setdefault((step.root, step.ask), LookUp(step.root, step.ask))
        self._lookup_of_step[position] = lookup
        lookup.ways[LookUpWay(step.calls, path)] = None
        values = list_values(data)[path] if path else self._read_sentences(position, step)
        lookup.add(step.subject, values)
        for value, sentence in ((value, sentence) for value in values for sentence in data.get("sentences", ())):
            if match := re.search(rf"(?<!\w){re.escape(value.text)}(?!\w)", sentence):
                context = read_context(sentence, match.start(), step.subject.text)
                # Only words with a meaning of their own tell what a value is.
                lookup.contexts |= {context} if has_content(context) else set()

    def _read_sentences(self, position: int, step: _ReadStep) -> Values:
        """The values in sentences: those that later steps take, or that the answer or the question names, or a date."""
        best = sorted(self._data[position].get("best", ()), key=lambda sentence: -float(sentence["score"]))
        texts = [str(sentence["text"]).rstrip(".") for sentence in best] or [""]
        uses = [self._value_at(origin) for origin in self._origins if origin.get("step") == position]
        stated = [[part for part in self._answer.split(SEPARATOR) if len(part) > 1 and part in text] for text in texts]
        # A sentence that tells one thing ends with it.
        asked, ends = set(phrase_key(step.ask)), [texts[0][word.start :] for word in list_words(texts[0])]
        named = [end for end in ends if end in self._question and not asked.intersection(phrase_key(end))]
        for values in (uses, *(map(ReplayValue, own) for own in (*stated, named[:1], DATE_PATTERN.findall(texts[0])))):
            if others := [v for v in values if normalize_name(v.text) != normalize_name(step.subject.text)]:
                return others
        return []

    def _find_word(self, ask: str) -> tuple[int, int, str] | None:
        """The longest run of words of the question that stands in the ask: its span, and the ask with WORD."""
        before, words = ask.partition(NAME)[0], list_words(self._question)
        for length in range(MAX_RELATION_WORDS if ID not in ask else 0, 0, -1):
            for run in (words[first : first + length] for first in range(len(words) - length + 1)):
                start, end, text = run[0].start, run[-1].end, "[ -]".join(re.escape(word.stem) for word in run)
                match = re.search(rf"(?<!\w){text}(?!\w)", before, re.IGNORECASE)
                is_free = not any(start < name[1] and name[0] < end for name in self._names)
                is_whole = match is not None and (NAME in ask or match.group() == ask)
                if match and is_free and is_whole and has_content(run[0].stem) and has_content(run[-1].stem):
                    return start, end, f"{ask[: match.start()]}{WORD}{ask[match.end() :]}"
        return None


def _split(step: Step, name: str, names: Iterable[Origin]) -> list[ArgumentPart]:
    """The parts of an argument; a word of the question beside another argument says what is asked."""
    parts = split_argument(step.arguments[name], step.origins.get(name, TYPED_ORIGIN))
    divided = [piece for part in parts for piece in divide_at_names(*part, names)]
    is_ask = len(step.arguments) > 1 and len(divided) == 1 and divided[0][0].islower()
    return [
        (text, TYPED_ORIGIN if origin["from"] == "question" and (is_ask or not has_content(text)) else origin)
        for text, origin in divided
    ]


def _find_names(steps: Iterable[Step]) -> list[Origin]:
    """The places in the question of names that are arguments."""
    arguments = [
        (value, step.origins.get(name, TYPED_ORIGIN)) for step in steps for name, value in step.arguments.items()
    ]
    parts = [part for argument in arguments for part in split_argument(*argument)]
    return [place for text, place in parts if place["from"] == "question" and not text[:1].islower()]


def read_context(sentence: str, start: int, subject: str) -> str:
    """The two words before a place, with the subject's place."""
    return " ".join(sentence[:start].replace(subject, NAME).split()[-CONTEXT_WORDS:])


def build_program(record: TraceRecord) -> Program:
    """Compile a demonstration; a problem says why it cannot be followed on other questions."""
    compiler = TraceCompiler(record)
    try:
        program = compiler.compile()
    except Mismatch as problem:
        return replace(compiler.program, problem=str(problem))
    # A step that found nothing, and that none follows, may have been a dead end.
    kept = [own for own in program.lookups if unique_values(own.rows) or own in _subjects(program)]
    derived = _derive(program) or _derive(_keep_look_ups(program, kept))
    return derived or replace(program, problem="its answer does not follow from its observations in a known way")


def _subjects(program: Program) -> list[int | LookUp]:
    return [lookup.subject for lookup in program.lookups]


def _keep_look_ups(program: Program, lookups: Sequence[LookUp]) -> Program:
    """The program with these look-ups alone, and without relations that none of them asks for."""
    asked = {lookup.word for lookup in lookups}
    slots = tuple(slot for slot in program.slots if not slot.is_relation or slot.start in asked)
    return replace(program, lookups=tuple(lookups), slots=slots)


def _derive(program: Program) -> Program | None:
    """The program with the derivation of its answer; None if there is none."""
    rows = {lookup: lookup.rows for lookup in program.lookups}
    is_read = any(way.path is None for lookup in program.lookups for way in lookup.ways)
    for given in list[QuestionSlot | None](_find_given(program)) or [None]:
        slots = tuple(sorted([*program.slots, *([given] if given else [])]))
        candidate = replace(program, slots=slots, given=given and given.start)
        evidence = candidate.evidence(rows, candidate.texts, shows_ids=program.shows_ids)
        derivation = recognize_derivation(evidence, program.answer) if rows else None
        # What an article calls a value, another may call otherwise.
        if derivation and not (is_read and derivation in SHARED):
            return replace(candidate, derivation=derivation)
    return None


def list_parts(program: Program) -> Iterator[Program]:
    """Each look-up that asks a question in words, as a demonstration of that question."""
    for place, lookup in enumerate(program.lookups):
        subject, values = next(((subject, values) for subject, values in lookup.rows if values), (None, ()))
        if subject is None or NAME not in lookup.ask or ID in lookup.ask:
            continue
        before, _, after = lookup.fill(program.texts).partition(NAME)
        own = replace(lookup, subject=len(before), observed={subject.key: (subject, values)})
        slots = [QuestionSlot(len(before), len(before) + len(subject.text), subject.text)]
        if lookup.word is not None:
            own.word, word = lookup.ask.index(WORD), program.texts[lookup.word]
            slots.append(QuestionSlot(own.word, own.word + len(word), word, is_relation=True))
        question, answer = f"{before}{subject.text}{after}", SEPARATOR.join(value.text for value in values)
        yield Program(
            program.id, question, (), answer, tuple(sorted(slots)), (own,), None, ALL, program.identifiers, part=place
        )


def _find_given(program: Program) -> list[QuestionSlot]:
    """The dates and numbers outside slots, and the observed values that the question names."""
    texts = {value.text for lookup in program.lookups for value in unique_values(lookup.rows)}
    patterns = [DATE_PATTERN, re.compile(r"(?<![\w-])\d+(?![\w-])")]
    patterns += [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in sorted(texts) if text]
    spans = dict.fromkeys(match.span() for pattern in patterns for match in pattern.finditer(program.question))
    slots = [QuestionSlot(*span, program.question[slice(*span)]) for span in spans]
    return [slot for slot in slots if not any(o.start < slot.end and slot.start < o.end for o in program.slots)]
