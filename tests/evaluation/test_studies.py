"""Blind studies: what is drawn, its power, and that the report recovers what scripted judges did."""

from collections import Counter
from functools import cache
from itertools import product
from random import Random
from statistics import fmean
from uuid import uuid4

import pytest
from scipy.stats import binomtest

from showhow.db.review.studies import OTHER, SAME, SCALES, StudyItem, StudyJudgement
from showhow.evaluation.comparison.study_design import (
    HIDDEN,
    PairPlan,
    StudyQuestion,
    SystemAnswer,
    detectable_win_share,
    draw_items,
    draw_questions,
    pair_systems,
    sign_test_power,
)
from showhow.evaluation.comparison.study_report import (
    compare_pairs,
    fit_strengths,
    measure_kappa,
    measure_position,
    measure_repeats,
    report_study,
    score_preference,
    sign_test,
)

QUESTIONS = [StudyQuestion(f"q{number}", f"Question {number}?", "abc"[number % 3]) for number in range(90)]


def answers_of(*systems: str) -> dict[str, dict[str, SystemAnswer]]:
    return {
        name: {question.key: SystemAnswer(f"{name} says {question.key}.") for question in QUESTIONS} for name in systems
    }


def draw(seed: int, *systems: str, questions: int = 20, within: float = 0.1, between: float = 0.1) -> list[StudyItem]:
    drawn = draw_questions(QUESTIONS, questions, seed)
    plan = PairPlan(pair_systems(systems, every=False), within, between, systems)
    return draw_items(drawn, answers_of(*systems), plan, seed)


def test_a_seed_draws_the_same_study_and_another_seed_another_one():
    def describe(items: list[StudyItem]) -> list[tuple[str, str, str | None]]:
        return [(item.question, item.left_answer["system"], item.repeated_by) for item in items]

    assert describe(draw(1, "first", "second")) == describe(draw(1, "first", "second"))
    assert describe(draw(1, "first", "second")) != describe(draw(2, "first", "second"))


def test_the_study_of_humaniqs_paper_has_720_comparisons():
    questions = [StudyQuestion(f"{name} {number}", "?", name) for name in "xyz" for number in range(60)]
    systems = ("hqa-4", "hqa-3.5", "gpt-4", "gpt-3.5", "mpt")
    answers = {name: {question.key: SystemAnswer("yes") for question in questions} for name in systems}
    drawn = draw_questions(questions, 50, 3)
    items = draw_items(drawn, answers, PairPlan(pair_systems(systems, every=False), 0.1, 0.1), 3)
    assert Counter(question.stratum for question in drawn) == {"x": 50, "y": 50, "z": 50}
    assert Counter(item.repeated_by for item in items) == {None: 600, SAME: 60, OTHER: 60}
    assert [item.position for item in items] == list(range(1, 721))
    sides = Counter(item.left_answer["system"] == "hqa-4" for item in items)
    assert binomtest(sides[True], 720).pvalue > 0.001
    places = {item.id: item.position for item in items}
    repeats = [item for item in items if item.repeats is not None]
    assert all(places[item.repeats] < item.position for item in repeats)
    assert len({item.repeats for item in repeats}) == 120


def test_no_answer_that_is_shown_names_a_system():
    shown = [text["shown"] for item in draw(1, "GPT-4", "hqa") for text in (item.left_answer, item.right_answer)]
    assert set(shown) <= {f"{HIDDEN} says {question.key}." for question in QUESTIONS}


@pytest.mark.parametrize(
    ("comparisons", "ties", "share"), [(12, 0.0, 0.8), (20, 0.4, 0.7), (9, 0.2, 1.0), (5, 0.0, 0.9)]
)
def test_the_power_is_that_of_all_outcomes_counted(comparisons: int, ties: float, share: float):
    chances = {-1: (1 - ties) * (1 - share), 0: ties, 1: (1 - ties) * share}
    reached: dict[tuple[int, int], float] = {(0, 0): 1.0}
    for _ in range(comparisons):
        after: dict[tuple[int, int], float] = {}
        for ((wins, losses), chance), (outcome, own) in product(reached.items(), chances.items()):
            key = (wins + (outcome == 1), losses + (outcome == -1))
            after[key] = after.get(key, 0.0) + chance * own
        reached = after
    power = sum(chance for (wins, losses), chance in reached.items() if sign_test(wins, losses) <= 0.05)
    assert sign_test_power(comparisons, ties, share) == pytest.approx(power)


def test_the_smallest_share_of_wins_is_found_with_a_power_of_80_percent():
    share = detectable_win_share(150, 0.467)
    assert share is not None
    assert sign_test_power(150, 0.467, share) == pytest.approx(0.8, abs=1e-4)
    assert detectable_win_share(5, 0.0) is None


def judged(
    question: str, systems: tuple[str, str], preference: str, judge: str = "ada", **particulars: object
) -> StudyJudgement:
    values = {"preference": preference, **particulars.pop("values", {})}  # type: ignore[dict-item]
    return StudyJudgement(uuid4(), question, "", systems, ({}, {}), judge, values, 60.0, **particulars)  # type: ignore[arg-type]


def test_humaniqs_wins_against_gpt_4_are_reported_as_it_printed_them():
    outcomes = ["left"] * 68 + ["tie"] * 70 + ["right"] * 12
    judgements = [judged(str(place), ("hqa", "gpt-4"), value) for place, value in enumerate(outcomes)]
    (row,) = compare_pairs(judgements, [("hqa", "gpt-4")], 0)
    shares = [round(100 * row[name] / row["judged"], 1) for name in ("wins", "ties", "losses")]
    assert shares == [45.3, 46.7, 8.0]
    assert row["score"] == pytest.approx((68 + 35) / 150)
    assert row["p"] == pytest.approx(binomtest(68, 80).pvalue)
    assert row["score_low"] < row["score"] < row["score_high"]
    # 85 of 126 pairs of processes: .00011, where the paper prints < .0001.
    assert sign_test(85, 41) == pytest.approx(0.00011, abs=5e-6)


# Scripted judges. Each answer has a quality; judges see it with noise, a lenient one better than it is, and prefer the
# left one by a bias. What they would do on the average is counted over very many pairs.

PEOPLE = {"ada": 0.3, "ben": 0.0, "cy": -0.4}
LEFT_BIAS, NOISE, TIE_WIDTH, ADVANTAGE = 0.35, 0.6, 0.45, 0.5


def rate(random: Random, quality: float, leniency: float) -> dict[str, str]:
    seen = quality + leniency + random.gauss(0, NOISE)
    grade = min(max(int(seen + 2), 0), 3)
    return {"truthful": "true" if seen > -0.5 else "false", "informative": SCALES["informative"][min(grade, 2)]} | {
        "quality": SCALES["quality"][grade]
    }


def prefer(random: Random, left: float, right: float) -> str:
    margin = left - right + LEFT_BIAS + random.gauss(0, NOISE)
    return "tie" if abs(margin) < TIE_WIDTH else "left" if margin > 0 else "right"


def simulate(seed: int, pairs: int = 60, repeated: float = 0.5) -> list[StudyJudgement]:
    """A study of two systems by three people, of which that share is judged again by the same and by another person."""
    random = Random(seed)
    judgements = []
    for place in range(pairs):
        qualities = {"first": random.gauss(ADVANTAGE, 0.7), "second": random.gauss(0, 0.7)}
        judge = random.choice(list(PEOPLE))
        another = random.choice([name for name in PEOPLE if name != judge])
        ways = [(None, judge)]
        ways += [(SAME, judge)] if random.random() < repeated else []
        ways += [(OTHER, another)] if random.random() < repeated else []
        for repeated_by, name in ways:
            systems = random.sample(list(qualities), 2)
            left, right = (qualities[system] for system in systems)
            values = {
                f"{scale} {side}": value
                for side, quality in (("left", left), ("right", right))
                for scale, value in rate(random, quality, PEOPLE[name]).items()
            }
            preference = prefer(random, left, right)
            particulars = {"repeats": judgements[-1].item_id, "repeated_by": repeated_by} if repeated_by else {}
            if particulars and judgements[-1].repeats is not None:
                particulars["repeats"] = judgements[-1].repeats
            judgements.append(judged(f"q{place}", tuple(systems), preference, name, values=values, **particulars))
    return judgements


@cache
def true_values() -> dict[str, float]:
    many = simulate(0, pairs=40_000, repeated=1.0)
    first = [judgement for judgement in many if judgement.repeats is None]
    points = [score_preference(judgement, "first") for judgement in first]
    position = measure_position(many)
    assert position is not None
    kappas = {
        f"{way} {scale}": measured["kappa"]
        for way in (SAME, OTHER)
        for scale, measured in measure_repeats(many, way, ["first", "second"]).items()
    }
    return {"score": fmean(points), "left": position["share"], **kappas}


@pytest.mark.long
def test_what_judges_of_known_bias_did_is_within_the_intervals_of_95_of_100_studies():
    truth = true_values()
    assert truth["left"] > 0.6
    covered = Counter[str]()
    for seed in range(1, 101):
        report = report_study(simulate(seed), {"pairs": [["first", "second"]]}, seed)
        (row,) = report["comparisons"]
        intervals = {"score": (row["score_low"], row["score_high"])}
        intervals["left"] = (report["position"]["share_low"], report["position"]["share_high"])
        for way, name in ((SAME, "within"), (OTHER, "between")):
            for scale, measured in report["agreement"][name].items():
                intervals[f"{way} {scale}"] = (measured["kappa_low"], measured["kappa_high"])
        covered.update(name for name, (low, high) in intervals.items() if low <= truth[name] <= high)
    assert set(covered) == set(truth)
    assert fmean(covered.values()) >= 95, covered
    # A single figure is covered by chance in a few more or less than 95.
    for name, number in covered.items():
        assert binomtest(number, 100, 0.95, alternative="less").pvalue > 0.01, (name, covered)


def test_lenient_people_are_told_apart():
    judges = {
        row["judge"]: row for row in report_study(simulate(5, pairs=400), {"pairs": [["first", "second"]]}, 0)["judges"]
    }
    grades = [judges[name]["quality_above_mean"] for name in PEOPLE]
    assert grades == sorted(grades, reverse=True)
    assert judges["ada"]["true"] > judges["cy"]["true"]


def test_strengths_are_those_of_which_the_preferences_were_drawn():
    random = Random(2)
    strengths = {"a": 1.0, "b": 0.2, "c": -1.2}
    judgements = []
    for place in range(900):
        left, right = random.sample(list(strengths), 2)
        chance = 1 / (1 + 2.718281828 ** (strengths[right] - strengths[left]))
        judgements.append(judged(str(place), (left, right), "left" if random.random() < chance else "right"))
    rows = fit_strengths(judgements, list(strengths), 0)
    assert [row["system"] for row in rows] == ["a", "b", "c"]
    for row in rows:
        assert row["strength_low"] < strengths[row["system"]] < row["strength_high"]


def test_a_system_that_never_loses_has_a_finite_strength():
    judgements = [judged(str(place), ("a", "b"), "left") for place in range(20)]
    judgements += [judged(str(place), ("b", "c"), "tie") for place in range(20)]
    rows = fit_strengths(judgements, ["a", "b", "c"], 0)
    assert rows[0]["system"] == "a"
    assert rows[0]["strength_high"] < 10


def test_kappa_without_variation_is_not_defined():
    assert measure_kappa(["true"] * 5, ["true"] * 5, 3)["kappa"] is None
    assert measure_kappa(["true", "false"] * 10, ["true", "false"] * 10, 3)["kappa"] == 1.0


def test_ac1_says_how_far_people_agree_where_nearly_all_labels_are_the_same():
    # Of 100 answers both call 90 true, and each calls 5 false that the other calls true.
    row = measure_kappa(["true"] * 95 + ["false"] * 5, ["true"] * 90 + ["false"] * 5 + ["true"] * 5, 2)
    assert row["same"] == pytest.approx(0.9)
    assert row["kappa"] == pytest.approx(-0.0526, abs=1e-4)
    # Chance is 2 x .95 x .05 = .095 (Gwet 2008), so that AC1 is (.9 - .095) / .905.
    assert row["ac1"] == pytest.approx(0.8895, abs=1e-4)


def test_preferences_in_several_pairs_of_systems_have_the_same_three_labels():
    judgements = []
    for other in "bcd":
        for place in range(10):
            preference = "left" if place < 8 else "right"
            once = judged(f"{other}{place}", ("a", other), preference)
            # Judged again with its sides exchanged, and with the other result in one of ten.
            again = {"left": "right", "right": "left"}[preference] if place else preference
            judgements += [once, judged(once.question, (other, "a"), again, repeats=once.item_id, repeated_by=SAME)]
    (row,) = report_study(judgements, {"pairs": [["a", "b"], ["a", "c"], ["a", "d"]]}, 0)["agreement"][
        "within"
    ].values()
    assert row["same"] == pytest.approx(0.9)
    # 24 times first, 6 times second; then 21 and 9: chance is .8 x .7 + .2 x .3 = .62.
    assert row["kappa"] == pytest.approx((0.9 - 0.62) / (1 - 0.62))


def test_people_against_the_metric_give_sensitivity_specificity_and_the_manual_score():
    judgements = []
    # Of ten answers, the metric and people call 4 right, only people 3, only the metric 1, and neither 2.
    verdicts = [(1.0, "true")] * 4 + [(0.4, "true")] * 3 + [(1.0, "false")] + [(0.0, "false")] * 2
    for place, (exact, truth) in enumerate(verdicts):
        values = {"preference": "tie", "truthful left": truth, "truthful right": "cannot judge"}
        scores = ({"f1": exact}, {"f1": 0.0})
        judgements.append(StudyJudgement(uuid4(), str(place), "", ("first", "second"), scores, "ada", values, 9.0))
    report = report_study(judgements, {"pairs": [["first", "second"]], "metric": "f1"}, 0)
    (metric,) = report["metrics"]
    assert (metric["sensitivity"], metric["specificity"]) == (pytest.approx(4 / 7), pytest.approx(2 / 3))
    assert (metric["missed"], metric["false_alarms"], metric["answers"]) == (3, 1, 10)
    (manual,) = report["manual"]
    assert (manual["system"], manual["exact"], manual["m"]) == ("first", 0.5, 0.8)


def test_an_empty_study_has_an_empty_report():
    report = report_study([], {"pairs": [["a", "b"], ["a", "c"]], "metric": "f1"}, 0)
    assert report["comparisons"] == report["ratings"] == report["strengths"] == report["manual"] == []
    assert report["position"] is None
