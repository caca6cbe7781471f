"""The results of a blind study, as one value of plain JSON values, with intervals of 95 %.

Shares, wins and strengths are of the first judgement of each comparison; what was judged again measures agreement.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from showhow.db.review.studies import (
    INFORMATIVE,
    LEFT,
    OTHER,
    PREFERENCE,
    QUALITY,
    RIGHT,
    SAME,
    SCALES,
    SIDES,
    TRUTHFUL,
    StudyJudgement,
)
from showhow.evaluation.agreement import gwet_ac1
from showhow.evaluation.statistics import (
    FloatArray,
    Interval,
    adjust_holm,
    cluster_bootstrap,
    cluster_mean,
    cohen_kappa,
    measure_judge,
    wilson_interval,
)

Report = dict[str, Any]
RATINGS = (TRUTHFUL, INFORMATIVE, QUALITY)
TIE = "tie"
FIRST, SECOND = "first", "second"
"""Which system of a pair is preferred, in the order of the design, so that all pairs have the same three labels."""
DRAWS = 1_000
_NEWTON_STEPS = 25


def report_study(judgements: Sequence[StudyJudgement], design: Mapping[str, Any], seed: int) -> Report:
    """All results; a part that the judgements do not give is None or empty."""
    first = [judgement for judgement in judgements if judgement.repeats is None]
    pairs = [tuple(pair) for pair in design.get("pairs", ())]
    systems = list(dict.fromkeys(name for pair in pairs for name in pair))
    metric = design.get("metric")
    judged = _judge_answers(first)
    return {
        "judged": len(judgements),
        "comparisons": compare_pairs(first, pairs, seed),
        "ratings": tabulate_ratings(first, systems),
        "position": measure_position(first),
        "strengths": fit_strengths(first, systems, seed) if len(systems) > 2 else [],
        "agreement": {
            "within": measure_repeats(judgements, SAME, systems),
            "between": measure_repeats(judgements, OTHER, systems),
        },
        "judges": describe_judges(judgements),
        "metrics": measure_metrics(judged),
        "manual": score_manually(judged, systems, metric) if metric else [],
        "corrections": propose_gold(judged, metric) if metric else [],
    }


def compare_pairs(first: Sequence[StudyJudgement], pairs: Sequence[tuple[str, str]], seed: int) -> list[Report]:
    """Wins, ties and losses of the first system of each pair; the p values are also adjusted by Holm."""
    rows: list[Report] = []
    for name, other in pairs:
        of_pair = [judgement for judgement in first if set(judgement.systems) == {name, other}]
        points = [score_preference(judgement, name) for judgement in of_pair]
        if not points:
            continue
        wins, losses = points.count(1.0), points.count(0.0)
        row: Report = {"system": name, "against": other, "judged": len(points), "wins": wins, "losses": losses}
        row |= {"ties": len(points) - wins - losses, "score": fmean(points)}
        row |= _as_fields("score", _mean_interval(points, [judgement.question for judgement in of_pair], seed))
        rows.append(row | {"p": sign_test(wins, losses)})
    for row, adjusted in zip(rows, adjust_holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = adjusted
    return rows


def score_preference(judgement: StudyJudgement, system: str) -> float:
    """1 if the system is preferred, 1/2 for a tie, 0 otherwise."""
    chosen = preferred_system(judgement)
    return 0.5 if chosen == TIE else float(chosen == system)


def preferred_system(judgement: StudyJudgement) -> str:
    """The preferred system, or a tie."""
    value = judgement.values[PREFERENCE]
    return TIE if value == TIE else judgement.systems[SIDES.index(value)]


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p value of that many wins and losses; 1 without any."""
    from scipy.stats import binomtest  # noqa: PLC0415 - loads in a quarter of a second

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def _mean_interval(values: Sequence[float], questions: Sequence[str], seed: int) -> Interval | None:
    """The bootstrap interval of the mean by question, as wide as Student's t makes it for few questions.

    The percentile interval is too narrow by sqrt((n - 1) / n), and by the difference of t and normal quantiles; taking
    outer percentiles mends both (Hesterberg 2015, "expanded percentile interval"). A mean of halves moves in steps, of
    which half a one is added on each side.
    """
    from scipy.stats import norm, t  # noqa: PLC0415 - likewise

    number = len(set(questions))
    if number < 2:
        return None
    clusters = np.unique(questions, return_inverse=True)[1]
    outer = 1 - 2 * float(norm.cdf(-sqrt(number / (number - 1)) * float(t.ppf(0.975, number - 1))))
    drawn = cluster_bootstrap(values, clusters, seed=seed, confidence=outer)
    half_step = 0.25 / len(values)
    return Interval(max(drawn.low - half_step, 0.0), min(drawn.high + half_step, 1.0))


def exact_interval(successes: int, count: int) -> Interval:
    """The exact interval of a share, of Clopper and Pearson: it covers at least 95 %."""
    from scipy.stats import binomtest  # noqa: PLC0415 - likewise

    result = binomtest(successes, count).proportion_ci(0.95, method="exact")
    return Interval(float(result.low), float(result.high))


def tabulate_ratings(first: Sequence[StudyJudgement], systems: Sequence[str]) -> list[Report]:
    """The share of each rating of each system's answers: HumanIQ's Table 4."""
    rows = []
    for scale in RATINGS:
        for value in SCALES[scale]:
            for system in systems:
                rated = [
                    (judgement.question, given[scale])
                    for judgement in first
                    for name, given in _iterate_ratings(judgement)
                    if name == system and scale in given
                ]
                if rated:
                    flags = [label == value for _, label in rated]
                    interval = _share_interval(flags, [question for question, _ in rated])
                    row = {"scale": scale, "value": value, "system": system, "rated": len(flags)}
                    rows.append(row | {"share": fmean(flags)} | _as_fields("share", interval))
    return rows


def _share_interval(flags: Sequence[bool], questions: Sequence[str]) -> Interval:
    """Wilson's interval; where questions recur, that of their clusters, since an answer is rated in several pairs."""
    clusters = np.unique(questions, return_inverse=True)[1]
    number = int(clusters.max()) + 1
    if number == len(flags) or len(set(flags)) == 1 or number < 2:
        return wilson_interval(round(fmean(flags) * number), number)
    interval = cluster_mean(np.asarray(flags, dtype=float), clusters).interval
    return Interval(max(interval.low, 0.0), min(interval.high, 1.0))


def _iterate_ratings(judgement: StudyJudgement) -> Iterator[tuple[str, dict[str, str]]]:
    """The systems of the two answers with their ratings."""
    for system, side in zip(judgement.systems, SIDES, strict=True):
        given = {scale: judgement.values.get(f"{scale} {side}") for scale in RATINGS}
        yield system, {scale: value for scale, value in given.items() if value is not None}


def measure_position(first: Sequence[StudyJudgement]) -> Report | None:
    """How often the left answer is preferred among those that are not ties; None if all are ties.

    Of first judgements, so that they are independent, and the exact test and interval hold.
    """
    counts = Counter(judgement.values[PREFERENCE] for judgement in first)
    decided = counts[LEFT] + counts[RIGHT]
    if not decided:
        return None
    interval = exact_interval(counts[LEFT], decided)
    row = {"left": counts[LEFT], "decided": decided, "share": counts[LEFT] / decided}
    return row | _as_fields("share", interval) | {"p": sign_test(counts[LEFT], counts[RIGHT])}


def fit_strengths(first: Sequence[StudyJudgement], systems: Sequence[str], seed: int) -> list[Report]:
    """Bradley-Terry strengths as log odds against the mean system, the strongest first; a tie is half a win each.

    Each pair that met gets half a win more on both sides, so that a system without losses has a finite strength. The
    intervals are by drawing questions. Only the systems that comparisons connect with the first one have strengths.
    """
    systems = _list_connected(first, systems)
    places = {system: place for place, system in enumerate(systems)}
    first = [judgement for judgement in first if judgement.systems[0] in places]
    questions = sorted({judgement.question for judgement in first})
    if not questions:
        return []
    wins = np.zeros((len(questions), len(systems), len(systems)))
    for judgement in first:
        one, other = (places[system] for system in judgement.systems)
        points = score_preference(judgement, judgement.systems[0])
        row = wins[questions.index(judgement.question)]
        row[one, other] += points
        row[other, one] += 1 - points
    met = (wins.sum(axis=0) + wins.sum(axis=0).T > 0) / 2
    values = _fit_bradley_terry(wins.sum(axis=0) + met)
    generator = np.random.default_rng(seed)
    weights = generator.multinomial(len(questions), np.full(len(questions), 1 / len(questions)), DRAWS)
    drawn = [_fit_bradley_terry(np.tensordot(times, wins, axes=1) + met) for times in weights]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    rows = [
        {"system": system, "strength": float(values[place])}
        | _as_fields("strength", Interval(float(low[place]), float(high[place])))
        for system, place in places.items()
    ]
    return sorted(rows, key=lambda row: -row["strength"])


def _list_connected(first: Sequence[StudyJudgement], systems: Sequence[str]) -> list[str]:
    """The systems that were compared with the first one that was judged, or with one that is connected with it."""
    met = {frozenset(judgement.systems) for judgement in first}
    start = [system for system in systems if any(system in pair for pair in met)][:1]
    connected, reached = set[str](), set(start)
    while reached:
        connected |= reached
        reached = {system for pair in met if pair & reached for system in pair} - connected
    return [system for system in systems if system in connected]


def _fit_bradley_terry(wins: FloatArray) -> FloatArray:
    """The strengths of greatest likelihood with mean 0, by Newton's method."""
    size = len(wins)
    games = wins + wins.T
    strengths = np.zeros(size)
    for _ in range(_NEWTON_STEPS):
        chances = 1 / (1 + np.exp(np.subtract.outer(strengths, strengths).T))
        gradient = (wins - games * chances).sum(axis=1)
        information = games * chances * chances.T
        hessian = np.diag(information.sum(axis=1)) - information
        # Only differences are determined; the matrix of ones sets the sum to 0.
        step = np.linalg.solve(hessian + 1.0, gradient)
        strengths = strengths + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    centred: FloatArray = strengths - strengths.mean()
    return centred


def measure_repeats(
    judgements: Sequence[StudyJudgement], repeated_by: str, systems: Sequence[str]
) -> dict[str, Report]:
    """The agreement on each scale of the first and the second judgement of the same comparisons."""
    by_id = {judgement.item_id: judgement for judgement in judgements}
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for again in judgements:
        judged = by_id.get(again.repeats) if again.repeats is not None else None
        if judged is None or again.repeated_by != repeated_by:
            continue
        order = sorted(judged.systems, key=systems.index)
        labels = {TIE: TIE, order[0]: FIRST, order[1]: SECOND}
        pairs[PREFERENCE].append((labels[preferred_system(judged)], labels[preferred_system(again)]))
        former = dict(_iterate_ratings(judged))
        for system, given in _iterate_ratings(again):
            for scale in given.keys() & former[system].keys():
                pairs[scale].append((former[system][scale], given[scale]))
    return {
        scale: measure_kappa([one for one, _ in given], [other for _, other in given], len(SCALES[scale]))
        for scale, given in sorted(pairs.items())
    }


def measure_kappa(first: Sequence[Hashable], second: Sequence[Hashable], labels: int) -> Report:
    """Cohen's kappa with an interval, None if both always give the same label; Gwet's AC1 over the possible labels.

    The interval is the exact one of the share of equal labels, as kappa of the chance agreement that was seen: it also
    holds for a dozen pairs, where one by drawing pairs is far too narrow. Where nearly all labels are the same, kappa
    is low however far people agree, and AC1 is not.
    """
    same = sum(one == other for one, other in zip(first, second, strict=True))
    report: Report = {
        "pairs": len(first),
        "same": same / len(first),
        "ac1": gwet_ac1([{"first": one, "second": other} for one, other in zip(first, second, strict=True)], labels),
        "kappa": None,
        "kappa_low": None,
        "kappa_high": None,
    }
    try:
        report["kappa"] = cohen_kappa(first, second)
    except ValueError:
        return report
    counts, other_counts = Counter(first), Counter(second)
    chance = sum(counts[label] * other_counts[label] for label in counts) / len(first) ** 2
    share = exact_interval(same, len(first))
    interval = Interval((share.low - chance) / (1 - chance), (share.high - chance) / (1 - chance))
    return report | _as_fields("kappa", interval)


def describe_judges(judgements: Sequence[StudyJudgement]) -> list[Report]:
    """How lenient each person is: true answers, quality beside that of all for the same systems, ties, left, time."""
    quality: dict[str, list[int]] = defaultdict(list)
    for judgement in judgements:
        for system, given in _iterate_ratings(judgement):
            if QUALITY in given:
                quality[system].append(SCALES[QUALITY].index(given[QUALITY]) + 1)
    rows = []
    for judge in sorted({judgement.judge for judgement in judgements}):
        own = [judgement for judgement in judgements if judgement.judge == judge]
        ratings = [(system, given) for judgement in own for system, given in _iterate_ratings(judgement)]
        truthful = [given[TRUTHFUL] for _, given in ratings if given.get(TRUTHFUL, "cannot judge") != "cannot judge"]
        grades = [
            (SCALES[QUALITY].index(given[QUALITY]) + 1) - fmean(quality[system])
            for system, given in ratings
            if QUALITY in given
        ]
        preferences = Counter(judgement.values[PREFERENCE] for judgement in own)
        rows.append(
            {
                "judge": judge,
                "judged": len(own),
                "true": truthful.count("true") / len(truthful) if truthful else None,
                "quality_above_mean": fmean(grades) if grades else None,
                "ties": preferences[TIE] / len(own),
                "left": _ratio(preferences[LEFT], preferences[LEFT] + preferences[RIGHT]),
                "median_seconds": median(judgement.seconds for judgement in own),
            }
        )
    return rows


class _JudgedAnswer(NamedTuple):
    """Whether most people who could judge an answer call it true, with its scores and its text."""

    is_true: bool
    scores: Mapping[str, float]
    text: str


_JudgedAnswers = Mapping[tuple[str, str], _JudgedAnswer]
"""By system and question."""


def measure_metrics(judged: _JudgedAnswers) -> list[Report]:
    """How far each automatic score says what people say: 1 is right, and people's "true" is the truth."""
    verdicts: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for answer in judged.values():
        for metric, value in answer.scores.items():
            verdicts[metric].append((value >= 1.0, answer.is_true))
    rows = []
    for metric, labels in sorted(verdicts.items()):
        row: Report = {
            "metric": metric,
            "answers": len(labels),
            "sensitivity": None,
            "specificity": None,
            "kappa": None,
        }
        if len({truth for _, truth in labels}) == 2:
            judge = measure_judge(*map(list, zip(*labels, strict=True)))
            row |= {"sensitivity": judge.sensitivity} | _as_fields("sensitivity", judge.sensitivity_interval)
            row |= {"specificity": judge.specificity} | _as_fields("specificity", judge.specificity_interval)
            row["kappa"] = judge.kappa
        row["false_alarms"] = sum(right and not truth for right, truth in labels)
        row["missed"] = sum(truth and not right for right, truth in labels)
        rows.append(row)
    return rows


def score_manually(judged: _JudgedAnswers, systems: Sequence[str], metric: str) -> list[Report]:
    """M beside the metric's share of right answers: what the metric takes for wrong is right if people say so."""
    rows = []
    for system in systems:
        answers = [answer for (name, _), answer in judged.items() if name == system and metric in answer.scores]
        if answers:
            exact = [answer.scores[metric] >= 1.0 for answer in answers]
            manual = [right or answer.is_true for right, answer in zip(exact, answers, strict=True)]
            row = {
                "system": system,
                "answers": len(answers),
                "metric": metric,
                "exact": fmean(exact),
                "m": fmean(manual),
            }
            rows.append(row | _as_fields("m", wilson_interval(sum(manual), len(manual))))
    return rows


def propose_gold(judged: _JudgedAnswers, metric: str) -> list[Report]:
    """The answers that people call true and the metric wrong: each proposes a corrected gold answer to its question."""
    missed: dict[tuple[str, str], Report] = {}
    for (system, question), answer in judged.items():
        if answer.is_true and (score := answer.scores.get(metric, 1.0)) < 1.0:
            row = {"question": question, "answer": answer.text, "score": score, "systems": []}
            missed.setdefault((question, answer.text), row)["systems"].append(system)
    return [row for _, row in sorted(missed.items())]


def _judge_answers(first: Sequence[StudyJudgement]) -> dict[tuple[str, str], _JudgedAnswer]:
    """The answers that people judged; those without a majority are left out."""
    votes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    answers: dict[tuple[str, str], tuple[Mapping[str, float], str]] = {}
    for judgement in first:
        ratings = zip(_iterate_ratings(judgement), judgement.scores, judgement.texts, strict=True)
        for (system, given), scores, text in ratings:
            if given.get(TRUTHFUL, "cannot judge") != "cannot judge":
                votes[system, judgement.question].append(given[TRUTHFUL] == "true")
                answers[system, judgement.question] = scores, text
    return {
        key: _JudgedAnswer(2 * sum(judged_true) > len(judged_true), *answers[key])
        for key, judged_true in votes.items()
        if 2 * sum(judged_true) != len(judged_true)
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _as_fields(name: str, interval: Interval | None) -> Report:
    return {f"{name}_low": interval and interval.low, f"{name}_high": interval and interval.high}
