"""Showhow's own F1: 1 for the gold answer in any notation, partial credit for shared words or shared answers.

With one gold answer: F1 over words, where a date, a number or a symbol is one word. With several gold answers, all of
which the answer should name: F1 over the answers, as in PhantomWiki's paper. An answer equal to the gold answer
(reasoners/answers/normalization.py), equal to an alias, or with the same entity scores 1.
"""

import re
from collections.abc import Iterator, Sequence

from evaluation.metrics.metric import GoldAnswer, Metric, list_aliases
from reasoners.answers.normalization import AnswerMatcher, ParsedAnswer, parse_answer, word_overlap

_LINE_SEPARATOR = re.compile(r"\s*[;\n]\s*")
_LIST_SEPARATOR = re.compile(r"(\s*(?:,\s*(?:and\b)?|&|\band\b)\s*)(?![^()]{0,200}\))")
_ITEM_NUMBER = re.compile(r"^\s*(?:\d+[.)]|[-*\u2022])\s+", re.MULTILINE)


def score_against_gold(answer: str, golds: Sequence[GoldAnswer]) -> float:
    """Score an answer against gold answers {"text", "entity", "aliases"}."""
    parsed_golds = [list(_parse_gold(gold)) for gold in golds]
    if len(golds) == 1:
        return _score_single(answer, parsed_golds[0])
    parsed = list(dict.fromkeys(map(parse_answer, split_answers(answer, golds))))
    matcher = AnswerMatcher([*parsed, *(alias for aliases in parsed_golds for alias in aliases)])

    def matches(candidate: ParsedAnswer, aliases: list[ParsedAnswer]) -> bool:
        return any(matcher.answers_match(candidate, alias) for alias in aliases)

    correct = sum(any(matches(candidate, aliases) for aliases in parsed_golds) for candidate in parsed)
    recalled = sum(any(matches(candidate, aliases) for candidate in parsed) for aliases in parsed_golds)
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
        return [line for line in _LINE_SEPARATOR.split(text) if line]
    names = {parse_answer(name).words for gold in golds for name in list_aliases(gold) if _LIST_SEPARATOR.search(name)}
    pieces = _LIST_SEPARATOR.split(text)
    answers: list[str] = []
    start = 0
    while start < len(pieces):
        ends = range(len(pieces), start + 1, -2) if names else ()
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
