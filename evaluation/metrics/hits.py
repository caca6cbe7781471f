"""The metrics that ask whether an answer hits a gold answer: Mintaka, CompMix, and the Hits@1 of papers on CWQ."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rapidfuzz.distance import Levenshtein

from showhow.evaluation.metrics.em_and_f1 import exact_match
from showhow.evaluation.metrics.metric import (
    GOLD_TEXT_FIELDS,
    Case,
    Components,
    DatasetMetric,
    UnusableValue,
    count_overlap_f1,
    declare_metrics,
    first_field,
    list_gold_texts,
    to_list,
    to_text,
    to_values,
)

MINTAKA_SCRIPT = "amazon-science/mintaka evaluate/evaluate.py"
COMPMIX_SCRIPT = "PhilippChr/EXPLAIGNN explaignn/evaluation.py"
TOG_SCRIPT = "IDEA-FinAI/ToG eval/utils.py"
PDRR_SCRIPT = "YihuaZhu111/PDRR eval/utils.py"
OWN_RULE = "Showhow: equality of normalized words"
MAX_RANKED_MENTIONS = 5
"""EXPLAIGNN keeps as many mentions for a text answer."""
MIN_WORD_OVERLAP = 0.7
"""The share of either side's words that PDRR's rule accepts."""
MINTAKA_FIELDS = ("gold", "answer", "en_true_answer")
_LANGUAGE = "en"


def score_mintaka_ids(case: Case) -> Components:
    """EM (the same list in the same order), F1 over the list, and h1 (a shared element) over ids and values.

    A gold answer of null that is answered with null counts as right, as in the script.
    """
    golds = _list_mintaka_values(_find_mintaka_answer(case.gold))
    predicted = None if case.predicted is None else to_values(case.predicted)
    is_equal = float(case.has_prediction and predicted == golds)
    if not golds or not predicted:
        return {"em": is_equal, "f1": is_equal, "h1": is_equal if None in (golds, predicted) else 0.0}
    overlap = (Counter(predicted) & Counter(golds)).total()
    return {"em": is_equal, "f1": count_overlap_f1(overlap, len(predicted), len(golds))[2], "h1": float(overlap > 0)}


def _find_mintaka_answer(gold: Mapping[str, Any]) -> Any:
    """The answer of a record, which may be the answer itself: {"answerType", "answer", "mention"}, or plain values."""
    return gold if {"answerType", "answer"} <= gold.keys() else first_field(gold, MINTAKA_FIELDS)


def _list_mintaka_golds(gold: Mapping[str, Any]) -> list[Any]:
    return _list_mintaka_values(_find_mintaka_answer(gold)) or []


def _list_mintaka_values(answer: Any) -> list[Any] | None:
    if not isinstance(answer, Mapping):
        return None if answer is None else to_list(answer)
    values = answer["answer"]
    is_entity = answer["answerType"] == "entity" and values is not None
    return [entity["name"] for entity in values] if is_entity else values


def score_mintaka_text(case: Case) -> Components:
    """EM and h1: the gold tokens occur in the prediction one after the other; F1 over words as they are written."""
    gold, answer = _join_mintaka_labels(_find_mintaka_answer(case.gold)), to_text(case.predicted)
    if not gold.strip():
        raise UnusableValue("the gold record has no answer")
    tokens, gold_tokens = split_dpr_tokens(answer), split_dpr_tokens(gold)
    starts = range(len(tokens) - len(gold_tokens) + 1)
    hit = float(any(tokens[start : start + len(gold_tokens)] == gold_tokens for start in starts))
    words, gold_words = answer.split(), gold.split()
    overlap = (Counter(words) & Counter(gold_words)).total()
    return {"em": hit, "f1": count_overlap_f1(overlap, len(words), len(gold_words))[2], "h1": hit}


def _join_mintaka_labels(answer: Any) -> str:
    """The labels of entities joined by blanks, the annotator's words if none is linked, or the first value."""
    if not isinstance(answer, Mapping):
        return " ".join(to_text(text, "the gold answer") for text in to_list(answer))
    values = answer["answer"]
    if values is None:
        return to_text(answer["mention"], "the mention")
    if answer["answerType"] != "entity":
        return str(values[0]) if values else ""
    return " ".join(_find_label(entity) for entity in values)


def _find_label(entity: Mapping[str, Any]) -> str:
    """The label of an entity, or its name where it has none in this language."""
    label = entity["label"]
    # The first release of Mintaka has a text, the present one a label by language.
    return to_text((label.get(_LANGUAGE) or entity["name"]) if isinstance(label, Mapping) else label, "the label")


def split_dpr_tokens(text: str) -> list[str]:
    """The tokens of DPR's normalizer: runs of letters, digits and marks, and single other characters, in lower case."""
    tokens: list[str] = []
    is_run = False
    for character in unicodedata.normalize("NFD", text):
        category = unicodedata.category(character)[0]
        if category in "LNM" and is_run:
            tokens[-1] += character
        elif category not in "ZC":
            tokens.append(character)
        is_run = category in "LNM"
    return [token.lower() for token in tokens]


def score_compmix(case: Case) -> Components:
    """P@1, reciprocal rank and Hit@5 of the ranked answers by id.

    Answers are ids, or {"id"} or {"answer": {"id"}, "rank"}; without ranks their order counts. A single text is mapped
    to the `mentions` [[mention, id], ...] of the row, if there are any, by their Levenshtein distance. Yes and no are
    compared like ids; the script's rule, which answers each question that begins with a verb by yes, is not applied.
    """
    gold_ids = {_normalize_id(gold) for gold in _list_compmix_golds(case.gold)}
    ranks = [rank for rank, answer_id in _rank_ids(case) if answer_id in gold_ids]
    best = min(ranks, default=None)
    if best is None:
        return {"p1": 0.0, "mrr": 0.0, "hit5": 0.0}
    return {"p1": float(best <= 1), "mrr": 1 / best, "hit5": float(best <= 5)}


def _list_compmix_golds(gold: Mapping[str, Any]) -> list[Any]:
    golds = to_list(first_field(gold, ("gold", "answers")), "the gold answers")
    return [answer["id"] if isinstance(answer, Mapping) else answer for answer in golds]


def _rank_ids(case: Case) -> list[tuple[float, str]]:
    predicted, mentions = case.predicted, case.row.get("mentions")
    if mentions is not None and isinstance(predicted, str):
        predicted = _rank_mentions(predicted, mentions)
    if isinstance(predicted, Mapping):
        predicted = [predicted]
    ranked = []
    for place, answer in enumerate(to_list(predicted), 1):
        match answer:
            case {"answer": {"id": answer_id}} | {"id": answer_id}:
                rank = answer.get("rank", place)
            case _:
                rank, answer_id = place, answer
        if not isinstance(rank, int | float) or rank < 1:
            raise UnusableValue(f"the rank {rank!r} is no number from 1")
        ranked.append((rank, _normalize_id(answer_id)))
    return ranked


def _rank_mentions(text: str, mentions: Any) -> list[str]:
    pairs = dict.fromkeys((str(mention), str(answer_id)) for mention, answer_id in mentions if answer_id)
    nearest = sorted(pairs, key=lambda pair: Levenshtein.distance(text, pair[0]))
    return [answer_id for _, answer_id in nearest[:MAX_RANKED_MENTIONS]]


def _normalize_id(value: Any) -> str:
    return to_text(value, "an answer's id").lower().strip().replace('"', "").replace("+", "")


def extract_first_braces(answer: str) -> str:
    """The text between the first opening brace and the next closing one; the whole answer without braces."""
    return answer.split("{", 1)[1].partition("}")[0] if "{" in answer else answer


def extract_last_braces(answer: str) -> str:
    """The text between the last braces; the whole answer without braces."""
    braces = re.findall(r"\{([^{}]*)\}", answer)
    return braces[-1] if braces else answer


def match_tog(answer: str, gold: str) -> bool:
    """Whether the texts are equal or one contains the other, in lower case and without blanks; "" matches all."""
    text, gold_text = _squeeze(answer), _squeeze(gold)
    return text in gold_text or gold_text in text


def _squeeze(text: str) -> str:
    return text.replace(" ", "").lower()


def match_pdrr(answer: str, gold: str) -> bool:
    """As `match_tog` without accents and punctuation, or 70 % of the words of either side shared; "" matches all."""
    text, gold_text = _remove_accents(answer), _remove_accents(gold)
    words, gold_words = set(text.split()), set(gold_text.split())
    return (
        match_tog(text, gold_text) or len(words & gold_words) >= MIN_WORD_OVERLAP * min(len(words), len(gold_words)) > 0
    )


def _remove_accents(text: str) -> str:
    letters = (letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return re.sub(r"[^\w\s]", "", "".join(letters)).lower().strip()


def match_strictly(answer: str, gold: str) -> bool:
    """Whether the words are the same in the same order, without case, punctuation and articles."""
    return exact_match(answer, [gold])


def _score_hit(
    name: str, extract: Callable[[str], str], match: Callable[[str, str], bool]
) -> Callable[[Case], Components]:
    """A score of 1 if the first answer matches a gold name; a text without a letter or digit matches none."""

    def score(case: Case) -> Components:
        answers = to_list(case.predicted)
        text = extract(to_text(answers[0]))
        return {name: float(_is_named(text) and any(match(text, gold) for gold in _list_names(case.gold)))}

    return score


def _is_named(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _list_names(gold: Mapping[str, Any]) -> list[str]:
    """The names in WebQSP's parses, of entities if they have one, or the texts of another record.

    Names without a letter or digit are left out: some of WebQSP's are empty, and so a part of every answer.
    """
    if "Parses" in gold:
        answers = [answer for parse in gold["Parses"] for answer in parse["Answers"]]
        names = [str(answer.get("EntityName") or answer["AnswerArgument"]) for answer in answers]
    elif _is_published_cwq(gold.get("answers")):
        answers = gold["answers"]
        names = [str(name) for answer in answers for name in (answer["answer"], *answer.get("aliases", ())) if name]
    else:
        names = list_gold_texts(gold)
    return [name for name in names if _is_named(name)]


def _is_published_cwq(answers: Any) -> bool:
    """Whether the answers are those of ComplexWebQuestions itself: {"answer", "answer_id", "aliases"}."""
    return (
        isinstance(answers, list)
        and bool(answers)
        and all(isinstance(answer, Mapping) and "answer" in answer for answer in answers)
    )


_EMPTY_NEVER_HITS = "the script counts an answer without a letter or digit as right, Showhow as wrong"


def _declare_hits1(
    prefix: str, value: str, purpose: str, rule: Callable[[Case], Components], **shared: Any
) -> tuple[DatasetMetric, ...]:
    fields = {"gold_fields": ((*GOLD_TEXT_FIELDS, "Parses"),), "kind_field": "compositionality_type"}
    return declare_metrics(prefix, {value: purpose}, score=rule, components=(value,), **fields, **shared)


HIT_METRICS = (
    *declare_metrics(
        "mintaka_kg",
        {"em": "the same ids or values in the same order", "f1": "F1 of ids or values", "h1": "a shared id or value"},
        score=score_mintaka_ids,
        gold_values=_list_mintaka_golds,
        components=("em", "f1", "h1"),
        datasets=("mintaka",),
        source=MINTAKA_SCRIPT,
        gold_fields=(MINTAKA_FIELDS,),
        kind_field="complexityType",
        scores_empty=True,
    ),
    *declare_metrics(
        "mintaka_text",
        {"em": "the answer contains the gold tokens", "f1": "F1 of the words", "h1": "the same as em"},
        score=score_mintaka_text,
        components=("em", "f1", "h1"),
        datasets=("mintaka",),
        source=MINTAKA_SCRIPT,
        gold_fields=(MINTAKA_FIELDS,),
        kind_field="complexityType",
    ),
    *declare_metrics(
        "compmix",
        {"p1": "the first answer is right", "mrr": "mean reciprocal rank", "hit5": "one of the first five is right"},
        score=score_compmix,
        gold_values=_list_compmix_golds,
        components=("p1", "mrr", "hit5"),
        datasets=("compmix",),
        source=COMPMIX_SCRIPT,
        gold_fields=(("gold", "answers"),),
        kind_field="domain",
    ),
    *_declare_hits1(
        "hits1",
        "tog",
        "the first answer contains a gold name or is contained in one",
        _score_hit("tog", extract_first_braces, match_tog),
        datasets=("cwq", "webqsp"),
        source=TOG_SCRIPT,
        note=_EMPTY_NEVER_HITS,
    ),
    *_declare_hits1(
        "hits1",
        "pdrr",
        "as hits1_tog, or 70 % of the words are shared",
        _score_hit("pdrr", extract_last_braces, match_pdrr),
        datasets=("cwq", "webqsp"),
        source=PDRR_SCRIPT,
        note=_EMPTY_NEVER_HITS,
    ),
    *_declare_hits1(
        "hits1",
        "strict",
        "the first answer equals a gold name",
        _score_hit("strict", str, match_strictly),
        datasets=("cwq",),
        source=OWN_RULE,
    ),
    *_declare_hits1(
        "webqsp",
        "hits1",
        "the first answer equals the name of a gold answer",
        _score_hit("hits1", str, match_strictly),
        datasets=("webqsp",),
        source=OWN_RULE,
    ),
)
"""The metrics of ranked answers and of answers as names."""
