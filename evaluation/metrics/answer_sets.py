"""The metrics that compare sets of answers or rows of results, for questions over knowledge graphs.

QALD (GERBIL), WebQSP, GrailQA, LC-QuAD 2.0, PhantomWiki and SPINACH.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from showhow.evaluation.metrics.metric import (
    Case,
    Components,
    Unscorable,
    UnusableValue,
    combine_f1,
    count_overlap_f1,
    declare_metrics,
    first_field,
    mean_components,
    to_list,
    to_text,
    to_values,
)

GERBIL = "dice-group/gerbil, branch QuestionAnswering, FMeasureCalculator.java"
WEBQSP_SCRIPT = "WebQSP eval.py"
GRAILQA_SCRIPT = "GrailQA evaluate.py"
PHANTOMWIKI_SCRIPT = "kilian-group/phantom-wiki src/phantom_eval/score.py"
SPINACH_SCRIPT = "stanford-oval/spinach eval.py"
LCQUAD2_RULE = "Showhow: LC-QuAD 2.0 has no script"
QALD_DATASETS = ("qald", "qald9plus", "qald10")
WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SET_FIGURES = ("precision", "recall", "f1")


_QALD_FIELDS = ("gold", "answers", "answer")
"""The fields of QALD JSON, and of QALD-9-plus with its answers from Wikidata as a list."""


def _list_qald_values(value: Any) -> set[Any]:
    """The distinct values of QALD's answers, of a truth value, or of a list of values; numbers count as texts."""
    values: set[Any] = set()
    for answer in to_list([value] if isinstance(value, Mapping) else value, "the answers"):
        match answer:
            case {"boolean": bool(verdict)}:
                values.add(verdict)
            case {"results": {"bindings": list(bindings)}}:
                values |= {str(term["value"]) for binding in bindings for term in binding.values()}
            case Mapping():
                raise UnusableValue("an answer is an object without 'boolean' and without 'results'")
            case bool():
                values.add(answer)
            case _:
                values.add(to_text(answer, "an answer"))
    return values


def _list_qald_golds(gold: Mapping[str, Any]) -> list[Any]:
    return list(_list_qald_values(first_field(gold, _QALD_FIELDS)))


def score_qald(case: Case) -> Components:
    """Counts, precision, recall and F1 of one question over the sets of values.

    Nothing asked and nothing answered scores 1, as in GERBIL. `qald_precision` is 1 if nothing is answered.
    """
    golds = set(_list_qald_golds(case.gold))
    predicted = _list_qald_values(case.predicted)
    right = len(predicted & golds)
    precision, recall, f1 = count_overlap_f1(right, len(predicted), len(golds))
    if not golds and not predicted:
        precision = recall = f1 = 1.0
    return {
        "macro_f1": f1,
        "precision": precision,
        "recall": recall,
        "qald_precision": precision if predicted else 1.0,
        "right": right,
        "predicted": len(predicted),
        "golds": len(golds),
    }


def summarize_qald(scores: Sequence[Components]) -> Components:
    """The means, the F1 of the summed counts, and the F1 of the means of QALD's precision and recall."""
    means = dict(mean_components(scores))
    right, predicted, golds = (sum(score[name] for score in scores) for name in ("right", "predicted", "golds"))
    micro = (1.0, 1.0, 1.0) if not predicted and not golds else count_overlap_f1(right, predicted, golds)
    return {name: means[name] for name in ("macro_f1", "precision", "recall", "qald_precision")} | {
        "macro_f1_qald": combine_f1(means["qald_precision"], means["recall"]),
        "micro_precision": micro[0],
        "micro_recall": micro[1],
        "micro_f1": micro[2],
    }


_NO_MATCH = 1e-40
"""WebQSP's script starts its count of right answers with this, so that a parse with answers beats one without."""


def score_webqsp(case: Case) -> Components | None:
    """Precision, recall and F1 of the parse with the best F1, over MIDs and values; None without a complete parse.

    A prediction that names nothing has precision 1; with a parse that has no answer it scores 1, as in the script. A
    question without a prediction, or with one that was refused or failed, has 0 in all.
    """
    parses = case.gold["Parses"]
    comments = [parse["AnnotatorComment"] for parse in parses]
    if not any(item["QuestionQuality"] == "Good" and item["ParseQuality"] == "Complete" for item in comments):
        return None
    if not case.has_prediction:
        return dict.fromkeys((*_SET_FIGURES, "accuracy"), 0.0)
    predicted = to_values(case.predicted)
    scores = [_score_parse([answer["AnswerArgument"] for answer in parse["Answers"]], predicted) for parse in parses]
    # The first of several best parses, as in the script.
    precision, recall, f1 = (round(figure, 15) for figure in max(scores, key=lambda score: score[2]))
    return {"precision": precision, "recall": recall, "f1": f1, "accuracy": float(f1 == 1.0)}


def _score_parse(golds: list[Any], predicted: list[Any]) -> tuple[float, float, float]:
    if not golds or not predicted:
        precision, recall = float(not predicted), float(not golds)
        return precision, recall, float(not golds and not predicted)
    right = _NO_MATCH + sum(gold in predicted for gold in golds)
    precision = right / (right + sum(answer not in golds for answer in predicted))
    recall = right / (right + sum(gold not in predicted for gold in golds))
    return precision, recall, combine_f1(precision, recall)


def _list_webqsp_golds(gold: Mapping[str, Any]) -> list[Any]:
    return [answer["AnswerArgument"] for parse in gold["Parses"] for answer in parse["Answers"]]


def summarize_webqsp(scores: Sequence[Components]) -> Components:
    """The means, and the F1 of the mean precision and recall."""
    means = dict(mean_components(scores))
    return means | {"f1_of_means": combine_f1(means["precision"], means["recall"])}


def score_grailqa(case: Case) -> Components:
    """Precision, recall and F1 over the distinct MIDs and values; 0 if both sides have none."""
    return _compare_sets(set(to_values(case.predicted)), set(_list_grailqa_golds(case.gold)))


def _list_grailqa_golds(gold: Mapping[str, Any]) -> list[Any]:
    answers = to_list(first_field(gold, ("gold", "answer")), "the gold answers")
    return [answer["answer_argument"] if isinstance(answer, Mapping) else answer for answer in answers]


def _compare_sets(predicted: set[Any], golds: set[Any]) -> Components:
    figures = count_overlap_f1(len(predicted & golds), len(predicted), len(golds))
    return dict(zip(_SET_FIGURES, figures, strict=True))


def score_lcquad2(case: Case) -> Components:
    """Precision, recall and F1 over the distinct ids; over values, numbers as numbers, if no gold answer has an id."""
    golds = set(_list_lcquad2_golds(case.gold))
    return _compare_sets(_normalize_values(case.predicted, "the prediction"), golds)


def _list_lcquad2_golds(gold: Mapping[str, Any]) -> list[Any]:
    ids = [value for value in to_list(gold.get("ans_id"), "the gold ids") if value is not None]
    return list(ids or _normalize_values(first_field(gold, ("gold", "ans")), "the gold answers"))


def _normalize_values(values: Any, name: str) -> set[str | float]:
    """The values without blanks around them; numbers as numbers, entities of Wikidata as their ids."""
    texts = [str(value).strip().removeprefix(WIKIDATA_ENTITY) for value in to_values(values, name)]
    return {float(text) if _NUMBER.fullmatch(text) else text for text in texts}


def score_phantomwiki(case: Case) -> Components:
    """EM, precision, recall and F1 over the sets of names; a text is split at commas, blanks and case are ignored."""
    golds = _split_names(first_field(case.gold, ("gold", "answer")))
    predicted = _split_names(case.predicted)
    return {"em": float(predicted == golds), **_compare_sets(predicted, golds)}


def _split_names(value: Any) -> set[str]:
    texts = [to_text(text, "an answer") for text in to_list(value, "the answers")]
    return {name.strip().lower() for text in texts for name in text.split(",")}


_ROW_FIELDS = ("gold", "results", "boolean")


def score_spinach(case: Case) -> Components:
    """Row-major F1: rows are assigned to gold rows so that the shares of shared values add up to the most.

    A pair without a shared value is a row too many and a row missed. EM is 1 if F1 is 1. Rows are SPARQL results in
    JSON: bindings of {"type", "value", ...}. No rows on both sides have no score, since the script divides by zero.
    """
    if case.predicted is None:
        return {"f1": 0.0, "em": 0.0}
    golds = _read_rows(first_field(case.gold, _ROW_FIELDS), "the gold rows")
    predicted = _read_rows(case.predicted, "the predicted rows")
    if isinstance(golds, bool) or isinstance(predicted, bool):
        f1 = float(type(golds) is type(predicted) and golds == predicted)
        return {"f1": f1, "em": f1}
    if not golds and not predicted:
        raise Unscorable("the gold result has no row, and so has the prediction")
    # SciPy takes a second to load, which pages and verbs that show other metrics need not wait for.
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    shares = np.array([[_share_values(row, gold) for gold in golds] for row in predicted])
    shares = shares.reshape(len(predicted), len(golds))
    assigned = shares[linear_sum_assignment(shares, maximize=True)]
    right = float(assigned.sum())
    partly = assigned[(assigned > 0) & (assigned < 1)]
    wrong = float((1 - partly).sum()) + 2 * int((assigned <= 0).sum())
    wrong += len(predicted) + len(golds) - 2 * len(assigned)
    f1 = 2 * right / (2 * right + wrong)
    return {"f1": f1, "em": float(f1 == 1.0)}


def _read_rows(value: Any, name: str) -> list[Mapping[str, Any]] | bool:
    match value:
        case {"boolean": bool(verdict)} | bool(verdict):
            return verdict
        case {"results": {"bindings": list(rows)}} | {"bindings": list(rows)}:
            value = rows
    rows = to_list(value, name)
    if not all(isinstance(row, Mapping) and all(isinstance(term, Mapping) for term in row.values()) for row in rows):
        raise UnusableValue(f"{name} are no SPARQL bindings")
    return rows


def _share_values(row: Mapping[str, Any], gold: Mapping[str, Any]) -> float:
    """The share of the gold row's values, without those of labels and descriptions, that the row has."""
    golds = [
        tuple(sorted(term.items()))
        for variable, term in gold.items()
        if not variable.endswith(("Label", "Description"))
    ]
    if not golds:
        return 0.0
    values = [tuple(sorted(term.items())) for term in row.values()]
    return (Counter(golds) & Counter(values)).total() / len(golds)


_GRAILQA: Mapping[str, Any] = {
    "score": score_grailqa,
    "gold_values": _list_grailqa_golds,
    "components": _SET_FIGURES,
    "datasets": ("grailqa",),
    "source": GRAILQA_SCRIPT,
    "gold_fields": (("gold", "answer"),),
    "kind_field": "level",
}

ANSWER_SET_METRICS = (
    *declare_metrics(
        "qald",
        {
            "macro_f1": "mean of the questions' F1",
            "macro_f1_qald": "harmonic mean of mean precision, 1 for a question without answer, and mean recall",
            "micro_f1": "F1 of the counts over all questions",
        },
        score=score_qald,
        gold_values=_list_qald_golds,
        summarize=summarize_qald,
        components=("macro_f1", "precision", "recall", "qald_precision", "right", "predicted", "golds"),
        datasets=QALD_DATASETS,
        source=GERBIL,
        gold_fields=(_QALD_FIELDS,),
        scores_empty=True,
    ),
    *declare_metrics(
        "webqsp",
        {
            "f1": "mean F1 of the best parse",
            "precision": "mean precision of the best parse",
            "recall": "mean recall of the best parse",
            "f1_of_means": "harmonic mean of mean precision and mean recall",
            "accuracy": "share of questions with F1 of 1",
        },
        score=score_webqsp,
        gold_values=_list_webqsp_golds,
        summarize=summarize_webqsp,
        components=("f1", "precision", "recall", "accuracy"),
        datasets=("webqsp",),
        source=WEBQSP_SCRIPT,
        gold_fields=(("Parses",),),
        scores_empty=True,
    ),
    *declare_metrics(
        "grailqa",
        {"f1": "mean F1 of the answers"},
        note="the script gives F1 1 where the logical forms are isomorphic, which needs the ontology",
        **_GRAILQA,
    ),
    *declare_metrics(
        "grailqa",
        {"em": "isomorphism of the logical forms"},
        unavailable="it compares logical forms by GrailQA's ontology files, which are not part of Showhow",
        **_GRAILQA,
    ),
    *declare_metrics(
        "lcquad2",
        {"f1": "mean F1", "precision": "mean precision", "recall": "mean recall"},
        score=score_lcquad2,
        gold_values=_list_lcquad2_golds,
        components=_SET_FIGURES,
        datasets=("lcquad2",),
        source=LCQUAD2_RULE,
        gold_fields=(("gold", "ans"),),
        kind_field="answertype",
    ),
    *declare_metrics(
        "phantomwiki",
        {"f1": "mean F1", "em": "equality of the sets", "precision": "mean precision", "recall": "mean recall"},
        score=score_phantomwiki,
        components=("em", *_SET_FIGURES),
        datasets=("phantomwiki",),
        source=PHANTOMWIKI_SCRIPT,
        gold_fields=(("gold", "answer"),),
        kind_field="difficulty",
    ),
    *declare_metrics(
        "spinach",
        {"f1": "mean row-major F1", "em": "share of questions with F1 of 1"},
        score=score_spinach,
        components=("f1", "em"),
        datasets=("spinach", *QALD_DATASETS),
        source=SPINACH_SCRIPT,
        gold_fields=(_ROW_FIELDS,),
        scores_empty=True,
        runs_lack="rows of a query's result",
    ),
)
"""The metrics of questions over knowledge graphs."""
