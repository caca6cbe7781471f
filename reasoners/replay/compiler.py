"""Compiles a trace to a program: its look-ups by the origins of their arguments, and how its answer follows."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from db.trace_record import TraceRecord
from reasoners.provenance import DATE_PATTERN, TYPED_ORIGIN
from reasoners.replay.demonstration import (
    ASK,
    ID,
    NAME,
    RELATION,
    STEM,
    WORD,
    ArgumentPart,
    CallValue,
    LookUp,
    LookUpWay,
    Program,
    QuestionSlot,
    SlotText,
    StepValue,
    WayCall,
    read_text,
    resolve_part,
    split_argument,
)
from reasoners.replay.derivations import (
    COMPARISONS_OF_VALUES,
    FULL_NAME,
    SEPARATOR,
    ReplayValue,
    Values,
    is_unremarkable,
    iterate_runs,
    list_values,
    read_context,
    recognize_derivation,
    stem,
    tokenize,
)
from worlds.text_normalization import normalize_name

_NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")


class CannotFollow(Exception):
    """The demonstration can be repeated, but not followed on other questions; the message is a clause that says why."""


@dataclass(eq=False, slots=True)
class _Group:
    """A look-up while it is compiled."""

    root: "SlotText | _Group"
    ask: str
    ways: dict[LookUpWay, None] = field(default_factory=dict)
    observed: dict[str, tuple[ReplayValue, list[ReplayValue]]] = field(default_factory=dict)
    contexts: dict[tuple[str, str], None] = field(default_factory=dict)

    def add(self, subject: ReplayValue, values: Iterable[ReplayValue]) -> None:
        """Add observed values of a subject."""
        own = self.observed.setdefault(subject.key, (subject, []))[1]
        for value in values:
            if value.key not in {known.key for known in own}:
                own.append(value)


class TraceCompiler:
    """Compiles the steps of one trace."""

    def __init__(self, record: TraceRecord) -> None:
        self._question, self._answer = record.question.full_text, record.trace.final_answer or ""
        self.program = Program(record.trace.id, self._question, tuple(record.steps), self._answer)
        self._steps = {step.position: step for step in record.steps if step.tool and step.data is not None}
        self._parts = {
            position: {n: list(split_argument(v, step.origins.get(n, TYPED_ORIGIN))) for n, v in step.arguments.items()}
            for position, step in self._steps.items()
        }
        self._groups: dict[tuple[Any, str], _Group] = {}
        self._group_of_step: dict[int, _Group] = {}
        self._readings: dict[str, str] = {}
        self._identifiers: dict[tuple[str, str], None] = {}

    def compile(self) -> Program:
        """Return the program; CannotFollow for the first step that is not understood."""
        self._split_sentences()
        instruments = {part.step for part in self._uses if part.is_instrument}
        for position in self._steps:
            if position not in instruments and not self._is_search_by_name(position):
                self._add_look_up(position)
        groups = list(self._groups.values())
        if not groups:
            raise CannotFollow("it has no look-up")
        self._add_answers()
        slots = {group.root for group in groups if isinstance(group.root, SlotText)}
        words = {group.ask: self._find_word(group.ask, slots) for group in groups}
        spans = sorted({(*slot, False) for slot in slots} | {(*word, True) for word in words.values() if word})
        starts = [start for start, _, _ in spans]
        lookups = []
        for group in groups:
            root, word = group.root, words[group.ask]
            ask = _replace_word(group.ask, self._question[slice(*word)]) if word else group.ask
            if word and group.ask in self._readings:
                self._readings[ask] = _replace_word(self._readings[group.ask], self._question[slice(*word)])
            subject = starts.index(root.start) if isinstance(root, SlotText) else -1 - groups.index(root)
            observed = tuple((name, tuple(values)) for name, values in group.observed.values())
            index = starts.index(word[0]) if word else None
            lookups.append(LookUp(subject, ask, index, tuple(group.ways), observed, tuple(group.contexts)))
        return replace(
            self.program,
            slots=tuple(QuestionSlot(start, end, self._question[start:end], r) for start, end, r in spans),
            lookups=tuple(lookups),
            readings=self._readings,
            identifiers=tuple(self._identifiers),
        )

    def _split_sentences(self) -> None:
        """Split the spans of the question that hold a shorter one: an ask may repeat the question as a whole."""
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                # A word of the question beside another argument says what is asked, as does the label of a relation.
                if len(parts) == 1 and (word := self._read_relation(parts[0], is_alone=len(arguments) == 1)):
                    arguments[name] = [word]
        spans = {part for _, parts in self._arguments for part in parts if isinstance(part, SlotText)}
        spans = {span for span in spans if not is_unremarkable(self._question[slice(*span)])}
        inner = [s for s in spans if not any(o != s and s.start <= o.start and o.end <= s.end for o in spans)]
        for arguments, name in [(a, n) for a in self._parts.values() for n in a]:
            arguments[name] = [piece for part in arguments[name] for piece in self._split_span(part, inner)]

    def _read_relation(self, part: ArgumentPart, *, is_alone: bool) -> str | None:
        if isinstance(part, SlotText):
            text = self._question[slice(*part)]
            return text if text.islower() and not is_alone else None
        if isinstance(part, StepValue) and part.is_instrument and part.pointer.endswith("/label"):
            return self._value_at(part).text
        return None

    def _split_span(self, part: ArgumentPart, spans: Sequence[SlotText]) -> Iterator[ArgumentPart]:
        if not isinstance(part, SlotText) or part in spans:
            yield part
            return
        end = part.start
        for span in sorted(span for span in spans if part.start <= span.start and span.end <= part.end):
            yield from filter(None, [self._question[end : span.start]])
            yield span
            end = span.end
        yield from filter(None, [self._question[end : part.end]])

    @property
    def _arguments(self) -> Iterator[tuple[int, list[ArgumentPart]]]:
        return ((position, parts) for position, own in self._parts.items() for parts in own.values())

    @property
    def _uses(self) -> Iterator[StepValue]:
        return (part for _, parts in self._arguments for part in parts if isinstance(part, StepValue))

    def _add_answers(self) -> None:
        """Add the results of searches that the answer names to the values of a look-up of the same subject."""
        for position in filter(self._is_search_by_name, self._steps):
            roots = list(self._iterate_roots(position))
            for group in self._groups.values():
                if roots and group.root == roots[0][0]:
                    subject = next(name for name, _ in group.observed.values())
                    titles = [str(hit.get("title")) for hit in (self._steps[position].data or {}).get("hits", ())]
                    known = {name.text for name, _ in group.observed.values()}
                    stated = set(self._answer.split(SEPARATOR)) - known
                    group.add(subject, [ReplayValue(title) for title in titles if title in stated])

    def _is_search_by_name(self, position: int) -> bool:
        """Whether the step only has a name as its argument: it gives the id or the article of this name."""
        parts = [part for parts in self._parts[position].values() for part in parts]
        return len(parts) == 1 and not isinstance(parts[0], str) and not _is_instrument(parts[0])

    def _add_look_up(self, position: int) -> None:
        chain = self._collect_chain(position)
        pairs = [pair for step in chain for pair in self._iterate_roots(step)]
        roots = {(root, normalize_name(subject.text)): (root, subject) for root, subject in pairs}
        if len(roots) != 1:
            raise CannotFollow(f"step {position} has {len(roots) or 'no'} subjects")
        root, subject = next(iter(roots.values()))
        ask, way = self._build_way(chain)
        group = self._groups.setdefault((root, ask), _Group(root, ask))
        group.ways[way] = None
        if way.path is None:
            values = self._read_values(position, subject)
            group.contexts.update(dict.fromkeys(self._iterate_contexts(position, subject, values)))
        else:
            values = list_values(self._steps[position].data)[way.path]
        group.add(subject, values)
        self._group_of_step[position] = group

    def _collect_chain(self, position: int) -> list[int]:
        """The steps of a look-up in order: those that gave its query, address or relation, and the step itself."""
        chain = {position}
        for parts in self._parts[position].values():
            for part in filter(_is_instrument, parts):
                chain.update(self._collect_chain(part.step))  # type: ignore[union-attr]
        return sorted(chain)

    def _iterate_roots(self, position: int) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        """Yield the slots and the look-ups that the step's arguments come from, each with the subject's value."""
        for name, parts in self._parts[position].items():
            for part in parts:
                if isinstance(part, SlotText):
                    yield part, ReplayValue(self._question[slice(*part)])
                elif isinstance(part, StepValue) and not part.is_instrument:
                    if self._is_search_by_name(part.step):
                        yield from self._iterate_identified(part)
                    else:
                        yield self._find_root(part, position, name)

    def _iterate_identified(self, part: StepValue) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        step = self._steps[part.step]
        ((argument, name),) = step.arguments.items()
        if part.is_id and not any(map(_is_id, self._parts[part.step][argument])):
            self._identifiers[str(step.tool), argument] = None
        roots = list(self._iterate_roots(part.step))
        if part.is_id or normalize_name(self._value_at(part).text) == normalize_name(str(name)):
            yield from roots
            return
        # A result of a search is a value of a look-up of the same subject, if there is one.
        group = next((group for group in self._groups.values() if group.root == roots[0][0]), None)
        if group is None:
            raise CannotFollow(f"step {part.step} searches with a name, and only a reader can tell which results count")
        value = self._value_at(part)
        group.add(next(iter(group.observed.values()))[0], [value])
        yield group, value

    def _find_root(self, part: StepValue, position: int, argument: str) -> tuple[SlotText | _Group, ReplayValue]:
        value, group = self._value_at(part), self._group_of_step.get(part.step)
        if group is None:
            raise CannotFollow(f"the {argument} of step {position} comes from step {part.step}, which is no look-up")
        # An observation may repeat the name of its subject.
        subject = next((own for own, _ in group.observed.values() if own.key == value.key), None)
        return (group.root, subject) if subject is not None else (group, value)

    def _value_at(self, part: StepValue) -> ReplayValue:
        text = resolve_part(part, self._question, {part.step: self._steps[part.step].data})
        if part.end is not None:
            return ReplayValue(text)
        items = [value for values in list_values(self._steps[part.step].data).values() for value in values]
        return next((value for value in items if text in (value.id, value.text)), ReplayValue(text))

    def _read_values(self, position: int, subject: ReplayValue) -> list[ReplayValue]:
        """The values in sentences: those that later steps or the answer take, else the only date, else names."""
        data = self._steps[position].data or {}
        name = normalize_name(subject.text)
        uses = [self._value_at(use) for use in self._uses if use.step == position]
        uses = [value for value in uses if normalize_name(value.text) != name]
        best = max(data.get("best", ()), key=lambda sentence: float(sentence["score"]), default=None)
        if uses or best is None:
            return uses
        parts = [part for part in self._answer.split(SEPARATOR) if len(part) > 1]
        stated = (
            [part for part in parts if part in text]
            for text in (best["text"], *(sentence["text"] for sentence in data["best"]))
        )
        answers = next(filter(None, stated), [])
        dates = [match.group() for match in DATE_PATTERN.finditer(best["text"])]
        if answers and name not in map(normalize_name, answers):
            texts = answers
        elif len(dates) == 1:
            texts = dates
        else:
            texts = self._named_in_question(position, best["text"], name)
            texts = texts or [text for text in FULL_NAME.findall(best["text"]) if normalize_name(text) != name]
        return list(map(ReplayValue, texts))

    def _named_in_question(self, position: int, sentence: str, name: str) -> list[str]:
        """The words at the end of a sentence that the question has too, but the ask has not: a value that it names."""
        shared = [word for word, _, _ in tokenize(sentence)]
        asked = {w for value in self._steps[position].arguments.values() for w, _, _ in tokenize(str(value))}
        for start, end in iterate_runs(self._question):
            phrase = self._question[start:end]
            words = [word for word, _, _ in tokenize(phrase)]
            is_name = normalize_name(phrase) in name
            if shared[-len(words) :] == words and not is_name and not asked.intersection(words):
                return [phrase]
        return []

    def _iterate_contexts(self, position: int, subject: ReplayValue, values: Values) -> Iterator[tuple[str, str]]:
        """Yield what stands before and after the values in the sentences, with the subject's place."""
        for sentence in (self._steps[position].data or {}).get("sentences", ()):
            for value in values:
                if match := re.search(rf"(?<!\w){re.escape(value.text)}(?!\w)", sentence):
                    before, after = read_context(sentence, match.start(), match.end(), subject.text)
                    # Only words with a meaning of their own, or a mark, tell what a value is.
                    if after or not is_unremarkable(before.replace(NAME, "")):
                        yield before, after

    def _build_way(self, chain: Sequence[int]) -> tuple[str, LookUpWay]:
        """The ask of a look-up and its way."""
        asks: list[str] = []
        calls = []
        for position in chain:
            arguments = []
            for name, parts in self._parts[position].items():
                content: str | CallValue = "".join(map(_to_place, parts))
                for part in parts:
                    if isinstance(part, StepValue) and part.is_instrument:
                        data, item = self._steps[part.step].data, part.pointer.rpartition("/")[0]
                        is_relation = item.startswith("/relations/")
                        content = CallValue(chain.index(part.step), RELATION if is_relation else part.pointer)
                        if is_relation:
                            asks.append(str(read_text(data, f"{item}/label")))
                        elif asks and (reading := read_text(data, f"{item}/reading")):
                            self._readings[asks[-1]] = self._mask_subject(reading, chain)
                if isinstance(content, str) and re.search(r"[^\W\d_]", content):
                    asks.append(content)
                    content = ASK
                arguments.append((name, content, isinstance(self._steps[position].arguments[name], list)))
            calls.append(WayCall(str(self._steps[position].tool), tuple(arguments)))
        if not asks:
            raise CannotFollow(f"step {chain[-1]} does not say what it asks for")
        paths = list_values(self._steps[chain[-1]].data)
        path = next((path for path in paths if path not in {"/best", "/candidates"}), None)
        return asks[-1], LookUpWay(tuple(calls), path)

    def _mask_subject(self, reading: str, chain: Sequence[int]) -> str:
        for _, subject in (pair for step in chain for pair in self._iterate_roots(step)):
            reading = reading.replace(subject.text, NAME)
        return reading

    def _find_word(self, ask: str, slots: Iterable[SlotText]) -> tuple[int, int] | None:
        """The span of the question with the longest run of content words that also stands in the ask."""
        words = [stem(word) for word, _, _ in tokenize(ask)]
        for start, end in iterate_runs(self._question):
            run = [stem(word) for word, _, _ in tokenize(self._question[start:end])]
            is_inside = any(words[first : first + len(run)] == run for first in range(len(words)))
            is_slot = any(start < slot.end and slot.start < end for slot in slots)
            if is_inside and not is_slot and ID not in ask and (NAME in ask or run == words):
                return start, end
        return None


def _replace_word(text: str, word: str) -> str:
    """Put the place of a word in place of the word or its stem."""
    for form, place in ((word, WORD), (stem(word.casefold()), STEM)):
        replaced, count = re.subn(rf"(?<!\w){re.escape(form)}(?!\w)", place, text, count=1, flags=re.IGNORECASE)
        if count:
            return replaced
    return text


def _is_instrument(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_instrument


def _is_id(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_id


def _to_place(part: ArgumentPart) -> str:
    return part if isinstance(part, str) else ID if _is_id(part) else NAME


def build_program(record: TraceRecord) -> Program:
    """Compile a demonstration; a problem says why it cannot be followed on other questions."""
    compiler = TraceCompiler(record)
    try:
        program = compiler.compile()
    except CannotFollow as problem:
        return replace(compiler.program, problem=str(problem))
    rows = [lookup.observed for lookup in program.lookups]
    is_read = any(way.path is None for lookup in program.lookups for way in lookup.ways)
    for given in [*_find_given(program), None]:
        slots = (*program.slots, given) if given else program.slots
        candidate = replace(program, slots=slots, given=len(program.slots) if given else None)
        derivation = recognize_derivation(
            candidate.evidence(rows, candidate.texts, shows_ids=program.shows_ids), program.answer
        )
        if derivation and not (is_read and derivation in COMPARISONS_OF_VALUES):
            return replace(candidate, derivation=derivation)
    return replace(program, problem="its answer does not follow from its observations in a known way")


def _find_given(program: Program) -> list[QuestionSlot]:
    """The dates and numbers outside slots, and the observed values that the question names."""
    texts = [value.text for lookup in program.lookups for value in lookup.values]
    patterns = [DATE_PATTERN, _NUMBER, *(re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in texts if text)]
    spans = [match.span() for pattern in patterns for match in pattern.finditer(program.question)]
    return [
        QuestionSlot(start, end, program.question[start:end])
        for start, end in dict.fromkeys(spans)
        if not any(slot.start < end and start < slot.end for slot in program.slots)
    ]
