"""The metrics of HotpotQA, 2WikiMultihopQA and MuSiQue, and AtomR's rule for five data sets.

Answers are compared by words, supporting facts and evidence as sets. A joint figure multiplies precisions and recalls.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from showhow.evaluation.metrics.em_and_f1 import (
    compare_hotpotqa_words,
    compare_words,
    exact_match,
    normalize_words,
    remove_punctuation,
)
from showhow.evaluation.metrics.metric import (
    ANSWER_FIELDS,
    GOLD_TEXT_FIELDS,
    Case,
    Components,
    UnusableValue,
    combine_f1,
    declare_metrics,
    first_field,
    list_gold_texts,
    to_list,
    to_text,
)

FIGURES = ("em", "f1", "precision", "recall")
SUPPORT_FIELDS = ("supporting_facts", "sp")
EVIDENCE_FIELDS = ("evidences", "evidence")
PARAGRAPH_FIELDS = ("predicted_support_idxs", "support_idxs")
ALIASES_ABSENT = (
    "id_aliases.json is not available, so only the answer of the record counts, and answer_aliases if given"
)
HOTPOTQA_SCRIPT = "hotpotqa/hotpot hotpot_evaluate_v1.py"
TWO_WIKI_SCRIPT = "Alab-NII/2wikimultihop 2wikimultihop_evaluate_v1.1.py"
MUSIQUE_SCRIPT = "StonyBrookNLP/musique evaluate_v1.0.py"
ATOMR_SCRIPT = "THU-KEG/AtomR src/calculate_metrics.py"
ATOMR_DATASETS = ("hotpotqa", "2wikimultihopqa", "musique", "blendqa", "crag")


def score_answer_words(case: Case) -> Components:
    """EM, F1, precision and recall, each as the maximum over the gold answers, by HotpotQA's rule."""
    answer, golds = to_text(case.predicted), list_gold_texts(case.gold)
    scores = [compare_hotpotqa_words(answer, gold) for gold in golds]
    precision, recall, f1 = (max(score[index] for score in scores) for index in range(3))
    return {"em": float(exact_match(answer, golds)), "f1": f1, "precision": precision, "recall": recall}


def _score_matches(matches: int, predicted: int, golds: int, *, is_exact: bool, prefix: str) -> Components:
    precision = matches / predicted if predicted else 0.0
    recall = matches / golds if golds else 0.0
    values = (float(is_exact), combine_f1(precision, recall), precision, recall)
    return {f"{prefix}_{name}": value for name, value in zip(FIGURES, values, strict=True)}


def _read_tuples(value: Any, name: str) -> list[tuple[Any, ...]]:
    rows = to_list(value, name)
    for row in rows:
        if not isinstance(row, list | tuple) or not row or not all(isinstance(part, str | int) for part in row):
            raise UnusableValue(f"{name} are not a list of lists of texts and numbers")
    return [tuple(row) for row in rows]


def score_supporting_facts(case: Case, *, lower_titles: bool) -> Components:
    """EM, F1, precision and recall of the distinct (title, sentence number) pairs.

    2WikiMultihopQA's script removes duplicates first and changes titles to lower case then, so two predictions that
    differ only in case are two.
    """
    predicted = set(_read_tuples(first_field(case.row, SUPPORT_FIELDS), "the predicted supporting facts"))
    golds = set(_read_tuples(case.gold["supporting_facts"], "the supporting facts"))
    facts, gold_facts = list(predicted), list(golds)
    if lower_titles:
        facts = [(str(title).lower(), *rest) for title, *rest in facts]
        gold_facts = [(str(title).lower(), *rest) for title, *rest in gold_facts]
    matches = sum(fact in gold_facts for fact in facts)
    missed = sum(fact not in facts for fact in gold_facts)
    support = _score_matches(matches, len(facts), matches + missed, is_exact=False, prefix="support")
    return {**support, "support_em": float(matches == len(facts) and not missed)}


def score_evidence(case: Case) -> Components:
    """EM, F1, precision and recall of the distinct triples, in lower case, without punctuation, articles kept."""
    predicted = {_normalize_triple(row) for row in _read_tuples(first_field(case.row, EVIDENCE_FIELDS), "the evidence")}
    golds = [_normalize_triple(row) for row in _read_tuples(case.gold["evidences"], "the gold evidences")]
    matches = sum(triple in golds for triple in predicted)
    is_exact = matches == len(predicted) == len(golds)
    return _score_matches(matches, len(predicted), len(golds), is_exact=is_exact, prefix="evidence")


def _normalize_triple(triple: Sequence[Any]) -> tuple[str, ...]:
    return tuple(" ".join(remove_punctuation(str(part).lower()).split()) for part in triple)


def _score_jointly(parts: Sequence[tuple[str, Callable[[Case], Components]]], case: Case) -> Components:
    """The parts' figures, and the joint figures: products of EM, precision and recall over the parts."""
    figures: dict[str, float] = {}
    joint_em = joint_precision = joint_recall = 1.0
    for prefix, score in parts:
        figures |= score(case)
        joint_em *= figures[f"{prefix}em"]
        joint_precision *= figures[f"{prefix}precision"]
        joint_recall *= figures[f"{prefix}recall"]
    return figures | {
        "joint_em": joint_em,
        "joint_f1": combine_f1(joint_precision, joint_recall),
        "joint_precision": joint_precision,
        "joint_recall": joint_recall,
    }


def score_musique_words(case: Case) -> Components | None:
    """EM and F1 over words, as the maximum over answer and aliases, without a rule for yes and no.

    Two texts without a word, such as "the" and "A", score 1. Questions that are not answerable are left out.
    """
    if not case.gold.get("answerable", True):
        return None
    answer, golds = to_text(case.predicted), list_gold_texts(case.gold)
    words, gold_words = normalize_words(answer), [normalize_words(gold) for gold in golds]
    f1 = max(compare_words(words, gold)[2] if words or gold else 1.0 for gold in gold_words)
    return {"em": float(words in gold_words), "f1": f1}


def score_musique_support(case: Case) -> Components | None:
    """F1, precision and recall of the distinct numbers (`idx`) of the supporting paragraphs."""
    if not case.gold.get("answerable", True):
        return None
    predicted = set(to_list(first_field(case.row, PARAGRAPH_FIELDS)))
    golds = {paragraph["idx"] for paragraph in case.gold["paragraphs"] if paragraph["is_supporting"]}
    return _score_matches(
        len(predicted & golds), len(predicted), len(golds), is_exact=predicted == golds, prefix="support"
    )


def score_by_atomr(case: Case) -> Components:
    """EM, cover EM and F1, each as the maximum over the gold answers; hyphens are blanks, yes and no have no rule.

    An answer covers a gold answer if its normalized text contains that of the gold answer, within words too.
    """
    words = _normalize_atomr_words(to_text(case.predicted))
    golds = [_normalize_atomr_words(gold) for gold in list_gold_texts(case.gold)]
    return {
        "em": float(words in golds),
        "cover_em": float(any(" ".join(gold) in " ".join(words) for gold in golds)),
        "f1": max(compare_words(words, gold)[2] for gold in golds),
    }


def _normalize_atomr_words(text: str) -> list[str]:
    return normalize_words(text.replace("-", " "))


def _name_figures(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in FIGURES)


_SUPPORT, _EVIDENCE, _JOINT = map(_name_figures, ("support", "evidence", "joint"))
_ANSWER_PURPOSES = {"em": "exact match of the answer", "f1": "F1 over the words of the answer"}
_SUPPORT_PURPOSES = {
    "support_em": "exact match of the supporting facts",
    "support_f1": "F1 of the supporting facts",
}
_JOINT_PURPOSES = {
    "joint_em": "product of the exact matches",
    "joint_f1": "F1 of the products of the precisions and of the recalls",
}
_score_hotpotqa_support = partial(score_supporting_facts, lower_titles=False)
_score_2wiki_support = partial(score_supporting_facts, lower_titles=True)
_HOTPOTQA: Mapping[str, Any] = {"datasets": ("hotpotqa",), "source": HOTPOTQA_SCRIPT}
_TWO_WIKI: Mapping[str, Any] = {"datasets": ("2wikimultihopqa",), "source": TWO_WIKI_SCRIPT, "note": ALIASES_ABSENT}
_MUSIQUE: Mapping[str, Any] = {"datasets": ("musique",), "source": MUSIQUE_SCRIPT}
_SUPPORT_FIELDS: Mapping[str, Any] = {
    "gold_fields": (("supporting_facts",),),
    "predicted_fields": (SUPPORT_FIELDS,),
    "components": _SUPPORT,
}

MULTIHOP_METRICS = (
    *declare_metrics("hotpotqa", _ANSWER_PURPOSES, score=score_answer_words, components=FIGURES, **_HOTPOTQA),
    *declare_metrics("hotpotqa", _SUPPORT_PURPOSES, score=_score_hotpotqa_support, **_SUPPORT_FIELDS, **_HOTPOTQA),
    *declare_metrics(
        "hotpotqa",
        _JOINT_PURPOSES,
        score=partial(_score_jointly, (("", score_answer_words), ("support_", _score_hotpotqa_support))),
        components=FIGURES + _SUPPORT + _JOINT,
        gold_fields=(GOLD_TEXT_FIELDS, ("supporting_facts",)),
        predicted_fields=(ANSWER_FIELDS, SUPPORT_FIELDS),
        **_HOTPOTQA,
    ),
    *declare_metrics("2wiki", _ANSWER_PURPOSES, score=score_answer_words, components=FIGURES, **_TWO_WIKI),
    *declare_metrics("2wiki", _SUPPORT_PURPOSES, score=_score_2wiki_support, **_SUPPORT_FIELDS, **_TWO_WIKI),
    *declare_metrics(
        "2wiki",
        {"evidence_em": "exact match of the evidence triples", "evidence_f1": "F1 of the evidence triples"},
        score=score_evidence,
        components=_EVIDENCE,
        gold_fields=(("evidences",),),
        predicted_fields=(EVIDENCE_FIELDS,),
        **_TWO_WIKI,
    ),
    *declare_metrics(
        "2wiki",
        _JOINT_PURPOSES,
        score=partial(
            _score_jointly,
            (("", score_answer_words), ("support_", _score_2wiki_support), ("evidence_", score_evidence)),
        ),
        components=FIGURES + _SUPPORT + _EVIDENCE + _JOINT,
        gold_fields=(GOLD_TEXT_FIELDS, ("supporting_facts",), ("evidences",)),
        predicted_fields=(ANSWER_FIELDS, SUPPORT_FIELDS, EVIDENCE_FIELDS),
        **_TWO_WIKI,
    ),
    *declare_metrics("musique", _ANSWER_PURPOSES, score=score_musique_words, components=("em", "f1"), **_MUSIQUE),
    *declare_metrics(
        "musique",
        {"support_f1": "F1 of the supporting paragraphs"},
        score=score_musique_support,
        components=_SUPPORT,
        gold_fields=(("paragraphs",),),
        predicted_fields=(PARAGRAPH_FIELDS,),
        **_MUSIQUE,
    ),
    *declare_metrics(
        "atomr",
        {
            "em": "exact match of the answer; a hyphen separates words",
            "cover_em": "the answer contains a gold answer",
            "f1": "F1 over the words of the answer; a hyphen separates words",
        },
        score=score_by_atomr,
        components=("em", "cover_em", "f1"),
        datasets=ATOMR_DATASETS,
        source=ATOMR_SCRIPT,
    ),
)
"""The metrics of the multi-hop data sets."""
