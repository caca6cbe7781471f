"""What a metric is: `Metric` scores an answer in a run, `DatasetMetric` the predictions for a data set by its rule.

Showhow's own F1 is 1 for the gold answer in any notation, with partial credit for shared words or shared answers. With
one gold answer it is over words, where a date, a number or a symbol is one word; with several, all of which the answer
should name, it is over the answers, as in PhantomWiki's paper. An answer equal to the gold answer
(reasoners/answers/normalization.py), equal to an alias, or with the same entity scores 1.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from showhow.reasoners.answers.normalization import (
    AnswerMatcher,
    ParsedAnswer,
    Words,
    list_keys,
    parse_answer,
    word_overlap,
)

GoldAnswer = Mapping[str, Any]
"""A gold answer {"text", "entity", "aliases"}; the last two may be missing."""
Components = Mapping[str, float]
"""The figures of one question or of all questions, by name."""
ANSWER_FIELDS = ("predicted", "prediction", "predicted_answer")
"""The fields of a prediction's row that may hold its answer, the first one first."""
GOLD_TEXT_FIELDS = ("gold", "answers", "answer")
"""The fields of a gold record that may hold its answers as texts, the first one first."""


class MetricError(ValueError):
    """There is no such metric, or the data set cannot have it; the message names those that exist."""


class UnusableValue(ValueError):
    """A value of a prediction or a gold record has a type that the metric cannot read."""


class Unscorable(Exception):
    """The rule gives the answer no score, which is not a wrong answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A score from 0 to 1 for an answer to a question with gold answers."""

    name: str
    """The key of its mean in reports, such as official_f1."""
    version: int
    """Incremented by every change that may change a score."""
    label: str
    """The name in texts and tables."""
    purpose: str
    score: Callable[[str, Sequence[GoldAnswer]], float]
    """Scores an answer against at least one gold answer; a correct answer names all of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question of a data set and the prediction for it."""

    gold: Mapping[str, Any]
    """The record of the data set under its own names, or {"gold": ...} if the prediction's row has the gold answers."""
    predicted: Any
    """The answer; None if there is none."""
    row: Mapping[str, Any]
    """The whole row of the prediction; empty if the question has no prediction, or one that was refused or failed."""

    @property
    def has_prediction(self) -> bool:
        """Whether there is an answer, which may be null or an empty list."""
        return any(name in self.row for name in ANSWER_FIELDS)


def mean_components(scores: Sequence[Components]) -> Components:
    """The mean of each component over the questions."""
    return {name: fmean(score[name] for score in scores) for name in scores[0]}


@dataclass(frozen=True, slots=True)
class DatasetMetric:
    """A figure for the predictions on a data set, by a published rule unless `source` says that it is Showhow's own."""

    name: str
    version: int
    """Incremented by every change that may change a value."""
    purpose: str
    source: str
    """The script that defines the rule."""
    datasets: tuple[str, ...]
    """The data sets that have this metric; none: all that have answers as texts."""
    components: tuple[str, ...]
    """The names of the figures that `score` gives."""
    score: Callable[[Case], Components | None]
    """Scores one question; None if the rule leaves it out. Raises UnusableValue or Unscorable."""
    value: str
    """The name of the figure that `summarize` gives as the metric's value."""
    gold_fields: tuple[tuple[str, ...], ...] = (GOLD_TEXT_FIELDS,)
    """The gold record has a field of each group."""
    predicted_fields: tuple[tuple[str, ...], ...] = (ANSWER_FIELDS,)
    """The row of an answered prediction has a field of each group."""
    summarize: Callable[[Sequence[Components]], Components] = mean_components
    """Combines the figures of the questions; their means unless the rule says otherwise."""
    scores_empty: bool = False
    """Whether the rule scores questions without an answer; otherwise they have 0 in all components."""
    kind_field: str | None = None
    """The field of the gold record by which values are also reported; None: its kind or type."""
    gold_values: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None
    """The ids and values of a gold record that answers are compared with; None if texts are compared."""
    runs_lack: str = ""
    """What the rule compares and the answers of runs do not have; empty if they can be scored."""
    note: str = ""
    """What the reader of a value must know, such as a file of the rule that is not available."""
    unanswerable: str = ""
    """The answer of its data set that a question cannot be answered; by default an empty one."""
    unavailable: str = ""
    """Why the metric cannot be computed; empty if it can."""

    @property
    def main_component(self) -> str:
        """The figure of one question that says whether it was right: the value, or what that is made of."""
        return self.value if self.value in self.components else self.components[0]


def declare_metrics(prefix: str, purposes: Mapping[str, str], **shared: Any) -> tuple[DatasetMetric, ...]:
    """One metric for each value of a rule: {value: purpose}; named PREFIX_VALUE, with the other fields shared."""
    return tuple(
        DatasetMetric(name=f"{prefix}_{value}", version=1, purpose=purpose, value=value, **shared)
        for value, purpose in purposes.items()
    )


def first_field(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of these fields that the record has; None if it has none."""
    return next((record[name] for name in names if name in record), None)


def to_text(value: Any, name: str = "the prediction") -> str:
    """The value as a text; UnusableValue unless it is a text, a number, or true or false."""
    if not isinstance(value, str | int | float):
        raise UnusableValue(f"{name} is {describe_unusable_type(value)}, and this metric compares texts")
    return str(value)


def to_list(value: Any, name: str = "the prediction") -> list[Any]:
    """The value as a list; a single text, number or truth value is a list of one, None is an empty list."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        raise UnusableValue(f"{name} is an object, and this metric compares lists")
    return list(value) if isinstance(value, list | tuple) else [value]


def to_values(value: Any, name: str = "the prediction") -> list[str | int | float]:
    """The value as a list of texts, numbers and truth values; UnusableValue for other elements."""
    values = to_list(value, name)
    for element in values:
        if not isinstance(element, str | int | float):
            raise UnusableValue(
                f"{name} contains {describe_unusable_type(element)}, and this metric compares texts and numbers"
            )
    return values


def describe_unusable_type(value: Any) -> str:
    """The type of a value that is no text, number or truth value, in words."""
    return {dict: "an object", list: "a list", type(None): "null"}.get(type(value), "a value of another type")


def list_gold_texts(gold: Mapping[str, Any]) -> list[str]:
    """The alternative gold answers of a record as texts, aliases last; UnusableValue if there is none.

    A gold answer may be a text or an object with `text` and `aliases`.
    """
    texts: list[str] = []
    for answer in to_list(first_field(gold, GOLD_TEXT_FIELDS), "the gold answer"):
        is_object = isinstance(answer, Mapping) and "text" in answer
        texts += list_aliases(answer) if is_object else [to_text(answer, "the gold answer")]
    texts += [to_text(text, "the alias") for text in to_list(gold.get("answer_aliases"), "the aliases")]
    # Test splits have blank answers, which no prediction is wrong against.
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise UnusableValue("the gold record has no answer")
    return texts


def list_aliases(gold: GoldAnswer) -> list[str]:
    """The text of a gold answer followed by its aliases."""
    return [str(gold["text"]), *map(str, gold.get("aliases") or ())]


def count_overlap_f1(overlap: float, answers: float, golds: float) -> tuple[float, float, float]:
    """Precision, recall and F1 of `overlap` right ones among answers and golds; all 0 if nothing is right."""
    if not overlap:
        return 0.0, 0.0, 0.0
    precision, recall = overlap / answers, overlap / golds
    return precision, recall, combine_f1(precision, recall)


def combine_f1(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


_LINE_SEPARATOR = re.compile(r"[;\n]")
_LIST_SEPARATOR = re.compile(r"((?<!\s)\s*+(?:,\s*+(?:and\b\s*+)?|&\s*+|\band\b\s*+))(?![^()]{0,200}\))")
_ITEM_NUMBER = re.compile(r"^[^\S\n]*+(?:\d+[.)]|[-*\u2022])\s+", re.MULTILINE)


_MAX_PIECES = 4_000
"""In a longer list, no names that contain a separator are looked for."""


def score_against_gold(answer: str, golds: Sequence[GoldAnswer]) -> float:
    """Score an answer against gold answers {"text", "entity", "aliases"}."""
    parsed_golds = [list(_parse_gold(gold)) for gold in golds]
    if len(golds) == 1:
        return _score_single(answer, parsed_golds[0])
    parsed = list(dict.fromkeys(map(parse_answer, split_answers(answer, golds))))
    matcher = AnswerMatcher([*parsed, *(alias for aliases in parsed_golds for alias in aliases)])

    # Equal answers share a key, so that thousands of answers are not compared with thousands of gold answers.
    places_by_key: dict[Words, list[tuple[int, ParsedAnswer]]] = defaultdict(list)
    for place, aliases in enumerate(parsed_golds):
        for alias in aliases:
            for key in list_keys(alias):
                places_by_key[key].append((place, alias))
    correct, recalled_places = 0, set[int]()
    for candidate in parsed:
        named = {
            place
            for key in list_keys(candidate)
            for place, alias in places_by_key.get(key, ())
            if matcher.answers_match(candidate, alias)
        }
        correct += bool(named)
        recalled_places |= named
    recalled = len(recalled_places)
    if not correct:
        return 0.0
    precision, recall = correct / len(parsed), recalled / len(parsed_golds)
    return 2 * precision * recall / (precision + recall)


def split_answers(text: str, golds: Sequence[GoldAnswer] = ()) -> list[str]:
    """Split a list of answers at line ends and semicolons, or if there are none, at commas and "and".

    A gold answer that contains a separator, such as "Trinidad and Tobago", is not split.
    """
    text = _ITEM_NUMBER.sub("", text).strip()
    if _LINE_SEPARATOR.search(text):
        return [line.strip() for line in _LINE_SEPARATOR.split(text) if line.strip()]
    names = {parse_answer(name).words for gold in golds for name in list_aliases(gold) if _LIST_SEPARATOR.search(name)}
    # A piece has a word, so a name spans no more pieces and separators than it has words.
    longest = 2 * max(map(len, names), default=0) + 1
    pieces = _LIST_SEPARATOR.split(text)
    answers: list[str] = []
    start = 0
    while start < len(pieces):
        last = min(len(pieces), start + longest)
        ends = range(last, start + 1, -2) if names and len(pieces) <= _MAX_PIECES else ()
        end = next((end for end in ends if parse_answer("".join(pieces[start:end])).words in names), start + 1)
        answers.append("".join(pieces[start:end]))
        start = end + 1
    return [answer for answer in answers if answer.strip(" .")]


def _parse_gold(gold: GoldAnswer) -> Iterator[ParsedAnswer]:
    entity = str(gold["entity"]) if gold.get("entity") else None
    return (parse_answer(name, entity) for name in list_aliases(gold))


def _score_single(answer: str, aliases: list[ParsedAnswer]) -> float:
    parsed = parse_answer(answer)
    matcher = AnswerMatcher([parsed, aliases[0]])
    if any(matcher.answers_match(parsed, alias) for alias in aliases):
        return 1.0
    if any(_excludes(parsed, alias) for alias in aliases):
        return 0.0
    return max(word_overlap(parsed.words, alias.words) for alias in aliases)


def _excludes(answer: ParsedAnswer, gold: ParsedAnswer) -> bool:
    """Whether shared words must not score: the entities differ, or only one side is yes or no."""
    return (
        answer.is_yes_or_no
        or gold.is_yes_or_no
        or (bool(answer.entities) and answer.entities.isdisjoint(gold.entities) and bool(gold.entities))
    )


ANSWER_F1 = Metric("f1", 2, "F1", "F1 that accepts the gold answer in any notation", score_against_gold)


def name_values(answer: str | Sequence[Any], golds: Sequence[GoldAnswer], values: Sequence[Any]) -> list[Any]:
    """The ids and values that an answer names: of gold answers, by names or ids, those of `values`; else its words.

    So an answer in words, or a list of some, is scored by a rule that compares ids; each gold answer has one of the
    values.
    """
    named = [(gold, _find_value(gold, place, golds, values)) for place, gold in enumerate(golds)]
    parts = split_answers(answer, golds) if isinstance(answer, str) else answer
    return [_name_value(part, named) if isinstance(part, str) else part for part in parts]


def _name_value(part: str, named: Sequence[tuple[GoldAnswer, Any]]) -> Any:
    """The value of a gold answer that the text equals, the first one with a value; the text if it equals none."""
    equal = (value for gold, value in named if value is not None and _names(part, gold))
    return next(equal, part)


def _names(text: str, gold: GoldAnswer) -> bool:
    plain = text.strip().casefold()
    return any(plain == alias.casefold() for alias in list_aliases(gold)) or score_against_gold(text, [gold]) == 1


def _find_value(gold: GoldAnswer, place: int, golds: Sequence[GoldAnswer], values: Sequence[Any]) -> Any:
    equal = next((value for value in values if _is_value_of(value, gold)), None)
    # A value may be written in another way than its name: a year as a moment.
    return values[place] if equal is None and len(values) == len(golds) else equal


def _is_value_of(value: Any, gold: GoldAnswer) -> bool:
    if not isinstance(value, str | int | float):
        return False
    # The id of an entity may be the end of its address.
    if gold.get("entity"):
        return gold["entity"] in (str(value), str(value).rsplit("/", 1)[-1])
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return _names(text, gold)
