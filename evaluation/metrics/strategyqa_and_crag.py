"""The metrics of StrategyQA (verdict, SARI, evidence paragraphs) and CRAG (right, missing or wrong)."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

from showhow.evaluation.metrics.metric import (
    Case,
    Components,
    Unscorable,
    UnusableValue,
    declare_metrics,
    describe_unusable_type,
    first_field,
    to_list,
    to_text,
    to_values,
)
from showhow.guard.json_input import load_json

STRATEGYQA_SCRIPT = "allenai/strategyqa-evaluator evaluator/eval.py"
DECOMPOSITION_FIELDS = ("decomposition",)
PARAGRAPH_ID_FIELDS = ("paragraphs",)
MAX_NGRAM = 4
_VERDICTS = {"yes": True, "true": True, "no": False, "false": False}
NGram = tuple[str, ...]


def score_verdict(case: Case) -> Components:
    """1 if the verdict is right: true or false, or as a text yes, no, true or false; other texts are wrong."""
    golds = to_list(first_field(case.gold, ("gold", "answer")), "the gold answer")
    gold = _read_verdict(golds[0]) if len(golds) == 1 else None
    if gold is None:
        raise UnusableValue("the gold answer is no verdict: true, false, yes or no")
    return {"accuracy": float(_read_verdict(case.predicted) is gold)}


def _read_verdict(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _VERDICTS.get(value.strip(" .\n\t").lower())
    raise UnusableValue(f"a verdict is {describe_unusable_type(value)}, and true, false, yes or no is required")


def score_decomposition(case: Case) -> Components:
    """SARI of the steps joined to one text, against the question and the gold steps, over n-grams up to 4.

    `sari` splits at single blanks, as the script whose own test has .6448. `sari_marks` is by the script's later
    version, for which a question mark is a word; its own test has .6645 for the same predictions.
    """
    texts = [
        to_text(case.gold["question"], "the question"),
        *(
            " ".join(to_text(step, "a step") for step in to_list(value, "the decomposition"))
            for value in (first_field(case.row, DECOMPOSITION_FIELDS), case.gold["decomposition"])
        ),
    ]
    return {
        "sari": compute_sari(*(text.split(" ") for text in texts)),
        "sari_marks": compute_sari(*(text.replace("?", " ?").split() for text in texts)),
    }


def compute_sari(source: list[str], prediction: list[str], target: list[str]) -> float:
    """SARI for one target: the mean of the F1 of kept n-grams, the F1 of added ones and the precision of deleted ones.

    N-grams count once. A share of nothing is 1.
    """
    total = Fraction(0)
    for size in range(1, MAX_NGRAM + 1):
        old, new, gold = (_list_ngrams(words, size) for words in (source, prediction, target))
        total += _f1(old & new, old & gold) + _f1(new - old, gold - old)
        total += _share(old - new, old - gold)
    return float(total / (3 * MAX_NGRAM))


def _list_ngrams(words: list[str], size: int) -> set[NGram]:
    return {tuple(words[start : start + size]) for start in range(len(words) + 1 - size)}


def _share(selected: set[NGram], relevant: set[NGram]) -> Fraction:
    return Fraction(len(selected & relevant), len(selected)) if selected else Fraction(1)


def _f1(selected: set[NGram], relevant: set[NGram]) -> Fraction:
    precision, recall = _share(selected, relevant), _share(relevant, selected)
    return 2 * precision * recall / (precision + recall) if precision and recall else Fraction(0)


def score_paragraphs(case: Case) -> Components:
    """Recall of the evidence among the first 10 paragraphs and the first one, each as the maximum over annotators."""
    retrieved = to_values(first_field(case.row, PARAGRAPH_ID_FIELDS), "the paragraphs")
    evidence = [_list_paragraph_ids(annotator) for annotator in case.gold["evidence"]]
    return {f"recall{limit}": _best_recall(evidence, set(retrieved[:limit])) for limit in (10, 1)}


def _best_recall(evidence: list[set[str]], retrieved: set[Any]) -> float:
    return max((len(ids & retrieved) / len(ids) if ids else 0.0 for ids in evidence), default=0.0)


def _list_paragraph_ids(annotator: list[Any]) -> set[str]:
    parts = chain.from_iterable(annotator)
    return set(chain.from_iterable(part for part in parts if isinstance(part, list)))


_STRATEGYQA: Mapping[str, Any] = {"datasets": ("strategyqa",), "source": STRATEGYQA_SCRIPT}

STRATEGYQA_METRICS = (
    *declare_metrics(
        "strategyqa",
        {"accuracy": "share of right verdicts"},
        score=score_verdict,
        components=("accuracy",),
        gold_fields=(("gold", "answer"),),
        **_STRATEGYQA,
    ),
    *declare_metrics(
        "strategyqa",
        {
            "sari": "SARI of the decomposition",
            "sari_marks": "SARI of the decomposition, a question mark is a word",
        },
        score=score_decomposition,
        components=("sari", "sari_marks"),
        gold_fields=(("question",), ("decomposition",)),
        predicted_fields=(DECOMPOSITION_FIELDS,),
        **_STRATEGYQA,
    ),
    *declare_metrics(
        "strategyqa",
        {
            "recall10": "recall of the evidence among 10 paragraphs",
            "recall1": "recall of the evidence by one paragraph",
        },
        score=score_paragraphs,
        components=("recall10", "recall1"),
        gold_fields=(("evidence",),),
        predicted_fields=(PARAGRAPH_ID_FIELDS,),
        **_STRATEGYQA,
    ),
)
"""The metrics of StrategyQA."""


CRAG_SCRIPT = "facebookresearch/CRAG local_evaluation.py"
MAX_WORDS = 75
"""The script cuts answers after 75 tokens of Llama 2, which is never later than after 75 words."""
JUDGEMENT_FIELD = "judged"
_MISSING = "i don't know"
_INVALID = "invalid"


def score_crag(case: Case) -> Components:
    """Whether the answer is correct, missing or wrong; Unscorable if the rules leave it to a judge who has not judged.

    Rules: an answer that says "i don't know", or nothing, is missing; one that equals a gold answer in lower case is
    correct; of a false premise ("invalid") both sides speak, or the answer is wrong. Otherwise the `judged` field of
    the row decides, true or false; a judgement that is neither is a failure of scoring.
    """
    if case.predicted in (None, []):
        return _count(missing=1)
    answer = to_text(case.predicted).strip().lower()
    if len(words := answer.split()) > MAX_WORDS:
        answer = " ".join(words[:MAX_WORDS])
    if not answer or _MISSING in answer:
        return _count(missing=1)
    verdicts = [_compare(answer, gold) for gold in _list_gold_answers(case)]
    if True in verdicts:
        return _count(correct=1)
    if None not in verdicts:
        return _count(wrong=1)
    judgement = case.row.get(JUDGEMENT_FIELD)
    if not isinstance(judgement, bool):
        given = "no judgement" if judgement is None else "a judgement that is neither true nor false"
        raise Unscorable(f"the rules leave the answer to a judge, and the row has {given} under 'judged'")
    return _count(correct=1) if judgement else _count(wrong=1)


def _compare(answer: str, gold: str) -> bool | None:
    """Whether the answer is correct by the rules; None if a judge has to decide."""
    if answer == gold:
        return True
    if (_INVALID in answer) != (_INVALID in gold):
        return False
    return True if _INVALID in answer else None


def _list_gold_answers(case: Case) -> list[str]:
    alternatives = first_field(case.gold, ("alternative_answers", "alt_ans"))
    if isinstance(alternatives, str):
        # The published file has the list as a text.
        try:
            alternatives = load_json(alternatives)
        except ValueError as error:
            raise UnusableValue("the alternative answers are a text that is no JSON list") from error
    golds = [*to_list(first_field(case.gold, ("gold", "answer", "answers"))), *to_list(alternatives)]
    return [to_text(gold, "a gold answer").strip().lower() for gold in golds]


def _count(*, correct: int = 0, missing: int = 0, wrong: int = 0) -> Components:
    return {"score": correct - wrong, "accuracy": correct, "missing": missing, "hallucination": wrong}


CRAG_METRICS = declare_metrics(
    "crag",
    {"score": "correct answers minus wrong ones", "accuracy": "share of correct answers"},
    score=score_crag,
    components=("score", "accuracy", "missing", "hallucination"),
    datasets=("crag",),
    source=CRAG_SCRIPT,
    gold_fields=(("gold", "answer", "answers"),),
    kind_field="question_type",
    scores_empty=True,
    unanswerable="invalid question",
    note=f"answers are cut after {MAX_WORDS} words; the script cuts them after 75 tokens of Llama 2",
)
"""The metrics of CRAG."""
