"""Compiles a trace to a program: its look-ups by the origins of their arguments, and how its answer follows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from db.trace_record import TraceRecord
from reasoners.provenance import DATE_PATTERN
from reasoners.replay.demonstration import (
    ASK,
    ID,
    NAME,
    STEM,
    WORD,
    ArgumentPart,
    CallValue,
    LookUp,
    LookUpRows,
    LookUpWay,
    Program,
    QuestionSlot,
    SlotText,
    StepValue,
    WayCall,
    is_label,
    split_arguments,
)
from reasoners.replay.derivations import (
    COMPARISONS_OF_VALUES,
    SEPARATOR,
    UNREMARKABLE_WORDS,
    ReplayValue,
    find_similar,
    is_unremarkable,
    iterate_runs,
    list_values,
    read_context,
    recognize_derivation,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction
from worlds.text_normalization import normalize_name

_FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")
_NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")


@dataclass(frozen=True, slots=True)
class CompiledTrace:
    """The slots and look-ups of a demonstration, in the order of the question and of its steps."""

    slots: tuple[QuestionSlot, ...]
    lookups: tuple[LookUp, ...]
    readings: Mapping[str, str]
    """How a tool said that it understood an ask."""
    identifiers: tuple[tuple[str, str, str], ...]
    """Calls that give the id of a name: tool, argument, pointer."""


class CannotFollow(Exception):
    """The demonstration can be repeated, but not followed on other questions; the message is a clause that says why."""


@dataclass(eq=False, slots=True)
class _Group:
    """A look-up while it is compiled."""

    root: "SlotText | _Group"
    ask: str
    ways: list[LookUpWay] = field(default_factory=list)
    observed: dict[str, tuple[ReplayValue, list[ReplayValue]]] = field(default_factory=dict)
    contexts: dict[tuple[str, str], None] = field(default_factory=dict)


class TraceCompiler:
    """Compiles the steps of one trace."""

    def __init__(self, record: TraceRecord) -> None:
        self._question, self._answer = record.question.text, record.trace.final_answer or ""
        self._steps = {step.position: step for step in record.steps if step.tool and step.data is not None}
        self._parts = {step.position: split_arguments(step) for step in self._steps.values()}
        self._split_sentences()
        self._groups: dict[tuple[Any, str], _Group] = {}
        self._group_of_step: dict[int, _Group] = {}
        self._readings: dict[str, str] = {}
        self._identifiers: dict[tuple[str, str, str], None] = {}

    def compile(self) -> CompiledTrace:
        """Return the slots and look-ups; CannotFollow for the first step that is not understood."""
        instruments = {part.step for part in self._iterate_uses() if part.is_instrument}
        for position in self._steps:
            if position not in instruments and not self._is_search_by_name(position):
                self._add_look_up(position)
        groups = list(self._groups.values())
        if not groups:
            raise CannotFollow("it has no look-up")
        self._add_answers()
        slots = {group.root: None for group in groups if isinstance(group.root, SlotText)}
        words = {group.ask: self._find_word(group.ask, slots) for group in groups}
        spans = sorted({(s.start, s.end, False) for s in slots} | {(*w, True) for w in words.values() if w})
        starts = [start for start, _, _ in spans]
        lookups = []
        for group in groups:
            root = group.root
            subject = starts.index(root.start) if isinstance(root, SlotText) else -1 - groups.index(root)
            word = words[group.ask]
            ask = _replace_word(group.ask, self._question[slice(*word)]) if word else group.ask
            observed = tuple((name, tuple(values)) for name, values in group.observed.values())
            index = starts.index(word[0]) if word else None
            lookups.append(LookUp(subject, ask, index, tuple(group.ways), observed, tuple(group.contexts)))
            if word and group.ask in self._readings:
                self._readings[ask] = _replace_word(self._readings[group.ask], self._question[slice(*word)])
        question_slots = tuple(QuestionSlot(start, end, self._question[start:end], r) for start, end, r in spans)
        return CompiledTrace(question_slots, tuple(lookups), self._readings, tuple(self._identifiers))

    def _split_sentences(self) -> None:
        """Split the spans of the question that hold a shorter one: an ask may repeat the question as a whole."""
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                # A word of the question beside another argument says what is asked: the director of X.
                if len(arguments) > 1 and len(parts) == 1 and isinstance(parts[0], SlotText):
                    text = self._question[parts[0].start : parts[0].end]
                    arguments[name] = [text] if text.islower() else parts
                # So does the label of a relation.
                if len(parts) == 1 and isinstance(parts[0], StepValue) and parts[0].pointer.endswith("/label"):
                    arguments[name] = [self._text_of(parts[0])] if parts[0].is_instrument else parts
        parts = [part for arguments in self._parts.values() for parts in arguments.values() for part in parts]
        spans = {
            (part.start, part.end)
            for part in parts
            if isinstance(part, SlotText) and not is_unremarkable(self._question[part.start : part.end])
        }
        inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                arguments[name] = [piece for part in parts for piece in _split_span(part, inner, self._question)]

    def _add_answers(self) -> None:
        """Add the results of searches that the answer names to the values of a look-up of the same subject."""
        for position in filter(self._is_search_by_name, self._steps):
            for group in self._groups.values():
                if (roots := list(self._iterate_roots(position))) and group.root == roots[0][0]:
                    values = next(iter(group.observed.values()))[1]
                    hits = [str(hit.get("title")) for hit in (self._steps[position].data or {}).get("hits", ())]
                    known = {value.text for value in values} | {name.text for name, _ in group.observed.values()}
                    values += [ReplayValue(t) for t in hits if t in self._answer.split(SEPARATOR) and t not in known]

    def _iterate_uses(self) -> Iterator[StepValue]:
        for arguments in self._parts.values():
            yield from (part for parts in arguments.values() for part in parts if isinstance(part, StepValue))

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
        if way not in group.ways:
            group.ways.append(way)
        values = group.observed.setdefault(subject.key, (subject, []))[1]
        known = {value.key for value in values}
        observed_now = self._observed_values(position, way.path)
        values += [value for value in observed_now if value.key not in known]
        if way.path is None:
            group.contexts.update(dict.fromkeys(self._iterate_contexts(position, subject, observed_now)))
        self._group_of_step[position] = group

    def _collect_chain(self, position: int) -> list[int]:
        """The steps of a look-up in order: those that gave its query, address or relation, and the step itself."""
        chain = [position]
        for parts in self._parts[position].values():
            for part in parts:
                if isinstance(part, StepValue) and part.is_instrument:
                    chain += [step for step in self._collect_chain(part.step) if step not in chain]
        return sorted(chain)

    def _iterate_roots(self, position: int) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        """Yield the slots and the look-ups that the step's arguments come from, each with the subject's value."""
        for name, parts in self._parts[position].items():
            for part in parts:
                if isinstance(part, SlotText):
                    yield part, ReplayValue(self._question[part.start : part.end])
                elif isinstance(part, StepValue) and not part.is_instrument:
                    if self._is_search_by_name(part.step):
                        yield from self._iterate_identified(part)
                    else:
                        yield self._find_root(part, position, name)

    def _iterate_identified(self, part: StepValue) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        step = self._steps[part.step]
        ((argument, name),) = step.arguments.items()
        if part.is_id and not any(_is_id(own) for own in self._parts[part.step][argument]):
            self._identifiers[str(step.tool), argument, part.pointer] = None
        roots = list(self._iterate_roots(part.step))
        if part.is_id or normalize_name(_resolve(step.data, part.pointer)) == normalize_name(str(name)):
            yield from roots
            return
        # A result of a search is a value of a look-up of the same subject, if there is one.
        group = next((group for group in self._groups.values() if group.root == roots[0][0]), None)
        if group is None:
            raise CannotFollow(f"step {part.step} searches with a name, and only a reader can tell which results count")
        values, value = next(iter(group.observed.values()))[1], self._value_at(part)
        values += [value] if value.key not in {known.key for known in values} else []
        yield group, value

    def _find_root(self, part: StepValue, position: int, argument: str) -> tuple[SlotText | _Group, ReplayValue]:
        value, group = self._value_at(part), self._group_of_step.get(part.step)
        if group is None:
            raise CannotFollow(f"the {argument} of step {position} comes from step {part.step}, which is no look-up")
        # An observation may repeat the name of its subject.
        subject = next((own for own, _ in group.observed.values() if own.key == value.key), None)
        return (group.root, subject) if subject is not None else (group, value)

    def _text_of(self, part: StepValue) -> str:
        return _resolve(self._steps[part.step].data, part.pointer)

    def _value_at(self, part: StepValue) -> ReplayValue:
        data = self._steps[part.step].data
        if part.end is None:
            items = [value for values in list_values(data).values() for value in values]
            text = _resolve(data, part.pointer)
            return next((value for value in items if text in (value.id, value.text)), ReplayValue(text))
        return ReplayValue(_resolve(data, part.pointer)[part.start : part.end])

    def _observed_values(self, position: int, path: str | None) -> list[ReplayValue]:
        """The values of the observation; of sentences those that later steps or the answer take, or the only date."""
        data = self._steps[position].data or {}
        if path is not None:
            return list_values(data)[path]
        roots = [root for step in self._collect_chain(position) for root in self._iterate_roots(step)]
        subjects = {normalize_name(subject.text) for _, subject in roots}
        uses = [self._value_at(use) for use in self._iterate_uses() if use.step == position]
        taken = {value.key: value for value in uses if normalize_name(value.text) not in subjects}
        best = max(data.get("best", ()), key=lambda sentence: float(sentence["score"]), default=None)
        if taken or best is None:
            return list(taken.values())
        texts = [best["text"], *(sentence["text"] for sentence in data["best"])]
        parts = [part for part in self._answer.split(SEPARATOR) if len(part) > 1]
        answers = next((stated for text in texts if (stated := [part for part in parts if part in text])), [])
        dates = [match.group() for match in DATE_PATTERN.finditer(best["text"])]
        if answers and not subjects & set(map(normalize_name, answers)):
            return [ReplayValue(answer) for answer in answers]
        if len(dates) == 1:
            return [ReplayValue(dates[0])]
        names = [name for name in _FULL_NAME.findall(best["text"]) if normalize_name(name) not in subjects]
        named = self._named_in_question(position, best["text"], subjects)
        return named or [ReplayValue(name) for name in names]

    def _iterate_contexts(
        self, position: int, subject: ReplayValue, values: Sequence[ReplayValue]
    ) -> Iterator[tuple[str, str]]:
        """Yield what stands before and after the values in the sentences, with the subject's place."""
        for sentence in (self._steps[position].data or {}).get("sentences", ()):
            for value in values:
                if match := re.search(rf"(?<!\w){re.escape(value.text)}(?!\w)", sentence):
                    before, after = read_context(sentence, match.start(), match.end(), subject.text)
                    # Only words with a meaning of their own, or a mark, tell what a value is.
                    if after or not is_unremarkable(before.replace(NAME, "")):
                        yield before, after

    def _named_in_question(self, position: int, sentence: str, subjects: set[str]) -> list[ReplayValue]:
        """The words at the end of a sentence that the question has too, but the ask has not: a value that it names."""
        shared = [word for word, _, _ in tokenize(sentence)]
        asked = {w for value in self._steps[position].arguments.values() for w, _, _ in tokenize(str(value))}
        for phrase in iterate_runs(self._question):
            words = [word for word, _, _ in tokenize(phrase)]
            is_name = any(normalize_name(phrase) in subject for subject in subjects)
            if shared[-len(words) :] == words and not is_name and not asked.intersection(words):
                return [ReplayValue(phrase)]
        return []

    def _build_way(self, chain: Sequence[int]) -> tuple[str, LookUpWay]:
        """The ask of a look-up and its way."""
        asks: list[str] = []
        calls = []
        for position in chain:
            arguments = []
            for name, parts in self._parts[position].items():
                instrument = next((part for part in parts if isinstance(part, StepValue) and part.is_instrument), None)
                content: str | CallValue = "".join(map(_to_place, parts))
                if instrument is not None:
                    content = CallValue(chain.index(instrument.step), instrument.pointer)
                    item = _resolve_item(self._steps[instrument.step].data, instrument.pointer)
                    if instrument.pointer.startswith("/relations/"):
                        content = CallValue(content.call, "/relations", by_label=True)
                        asks.append(str(item["label"]))
                    elif "reading" in item and asks:
                        self._readings[asks[-1]] = self._mask_subject(str(item["reading"]), chain)
                elif re.search(r"[^\W\d_]", str(content)):
                    asks.append(str(content))
                    content = ASK
                arguments.append((name, content, isinstance(self._steps[position].arguments[name], list)))
            calls.append(WayCall(str(self._steps[position].tool), tuple(arguments)))
        if not asks:
            raise CannotFollow(f"step {chain[-1]} does not say what it asks for")
        paths = list_values(self._steps[chain[-1]].data)
        path = next((path for path in paths if path not in {"/best", "/candidates"}), None)
        return asks[-1], LookUpWay(tuple(calls), path, takes_label=is_label(asks[-1]))

    def _mask_subject(self, reading: str, chain: Sequence[int]) -> str:
        for step in chain:
            for _, subject in self._iterate_roots(step):
                reading = reading.replace(subject.text, NAME)
        return reading

    def _find_word(self, ask: str, slots: Iterable[SlotText]) -> tuple[int, int] | None:
        """The span of the question with the longest run of content words that also stands in the ask."""
        if ID in ask:
            return None
        words = [stem(word) for word, _, _ in tokenize(ask)]
        tokens = [
            token
            for token in tokenize(self._question)
            if not any(slot.start < token[2] and token[1] < slot.end for slot in slots)
        ]
        longest: tuple[int, int, int] | None = None
        for first in range(len(tokens)):
            for last in range(first, len(tokens)):
                run = [stem(word) for word, _, _ in tokens[first : last + 1]]
                if any(tokens[first][1] < slot.start < tokens[last][2] for slot in slots):
                    break
                is_inside = any(words[start : start + len(run)] == run for start in range(len(words)))
                is_inside &= NAME in ask or run == words
                if is_inside and not {run[0], run[-1]} & UNREMARKABLE_WORDS and (not longest or len(run) > longest[0]):
                    longest = len(run), tokens[first][1], tokens[last][2]
        return longest and longest[1:]


def _replace_word(text: str, word: str) -> str:
    """Put the place of a word in place of the word or its stem."""
    for form, place in ((word, WORD), (stem(word.casefold()), STEM)):
        replaced, count = re.subn(rf"(?<!\w){re.escape(form)}(?!\w)", place, text, count=1, flags=re.IGNORECASE)
        if count:
            return replaced
    return text


def _split_span(part: ArgumentPart, spans: Sequence[tuple[int, int]], question: str) -> Iterator[ArgumentPart]:
    end = part.start if isinstance(part, SlotText) else 0
    if not isinstance(part, SlotText) or (part.start, part.end) in spans:
        yield part
        return
    for start, stop in sorted(span for span in spans if part.start <= span[0] and span[1] <= part.end):
        yield from filter(None, [question[end:start]])
        yield SlotText(start, stop)
        end = stop
    yield from filter(None, [question[end : part.end]])


def _is_instrument(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_instrument


def _is_id(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_id


def _to_place(part: ArgumentPart) -> str:
    return part if isinstance(part, str) else ID if _is_id(part) else NAME


def _resolve_item(data: Any, pointer: str) -> Any:
    """The object that holds the value at the pointer."""
    for key in pointer.split("/")[1:-1]:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def _resolve(data: Any, pointer: str) -> str:
    return str(_resolve_item(data, pointer + "/"))


def build_program(record: TraceRecord, encode: EncodeFunction) -> Program:
    """Compile a demonstration; a problem says why it cannot be followed on other questions."""
    question, answer = record.question.text, record.trace.final_answer or ""
    program = Program(record.trace.id, question, tuple(record.steps), answer)
    compiler = TraceCompiler(record)
    try:
        compiled = compiler.compile()
    except CannotFollow as problem:
        return replace(program, problem=str(problem))
    program = replace(
        program, **{name: getattr(compiled, name) for name in ("slots", "lookups", "readings", "identifiers")}
    )
    program = _find_similar_words(program, encode)
    rows = [lookup.observed for lookup in program.lookups]
    for given in [*_find_given(program, rows), None]:
        slots = (*program.slots, given) if given else program.slots
        candidate = replace(program, slots=slots, given=len(program.slots) if given else None)
        evidence = candidate.evidence(rows, [slot.text for slot in slots])
        derivation = recognize_derivation(evidence, answer)
        is_read = any(way.path is None for lookup in program.lookups for way in lookup.ways)
        if derivation and not (is_read and derivation in COMPARISONS_OF_VALUES):
            return replace(candidate, derivation=derivation)
        if given:
            program = replace(program, problem="its answer does not follow from its observations in a known way")
    return replace(program, problem="its answer does not follow from its observations in a known way")


def _find_similar_words(program: Program, encode: EncodeFunction) -> Program:
    """Make a slot of a word that resembles the relation that was looked up, as wife resembles spouse."""
    slots, lookups = list(program.slots), list(program.lookups)
    for lookup in program.lookups:
        if lookup.word is not None or not lookup.ways[0].takes_label:
            continue
        free = [
            token
            for token in tokenize(program.question)
            if token[0] not in UNREMARKABLE_WORDS and not any(s.start <= token[1] < s.end for s in slots)
        ]
        place = find_similar(lookup.ask, [word for word, _, _ in free], encode)
        if place is not None:
            _, start, end = free[place]
            lookups = [replace(o, word=len(slots), ask=WORD) if o.ask == lookup.ask else o for o in lookups]
            slots.append(QuestionSlot(start, end, program.question[start:end], is_relation=True, label=lookup.ask))
    return replace(program, slots=tuple(slots), lookups=tuple(lookups))


def _find_given(program: Program, rows: Sequence[LookUpRows]) -> list[QuestionSlot]:
    """The dates and numbers outside slots, and the observed values that the question names."""
    texts = [value.text for row in rows for _, values in row for value in values]
    patterns = [DATE_PATTERN, _NUMBER, *(re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in texts if text)]
    spans = [match.span() for pattern in patterns for match in pattern.finditer(program.question)]
    return [
        QuestionSlot(start, end, program.question[start:end])
        for start, end in dict.fromkeys(spans)
        if not any(slot.start < end and start < slot.end for slot in program.slots)
    ]
