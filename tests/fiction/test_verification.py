"""Verification of imported instances: each check reports the errors planted for it."""

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest

from showhow.fiction.generator.world_files import UNIVERSE_FILE
from showhow.fiction.phantomwiki.articles import STATED_FACTS_FILE
from showhow.fiction.phantomwiki.instance import import_instance
from showhow.fiction.phantomwiki.records import ValueCodec
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.relations import RELATIONS, find_related
from showhow.fiction.universe.universe import Friendships, Universe
from showhow.fiction.verification import VerificationReport, _make_probe, verify_world
from showhow.fiction.verification_checks import VerificationCheck
from showhow.worlds.folder import WorldError
from tests.fiction.phantomwiki import small_instance
from tests.fiction.world_alterations import change_article, change_graph, change_rows, change_stated


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds with the small instance, including handmade relation tables."""
    folder = small_instance.write(tmp_path_factory.mktemp("instance") / "small")
    (folder / "relations.json.gz").write_bytes(gzip.compress(json.dumps(_cells()).encode()))
    worlds = tmp_path_factory.mktemp("worlds")
    import_instance(worlds, "small", folder, {})
    return worlds


def _cells() -> dict[str, dict[str, list[str]]]:
    attributes = {
        "parent": _of("Cy Lee", "Di Lee", are=["Ann Lee", "Bo Lee"]),
        "mother": _of("Cy Lee", "Di Lee", are=["Ann Lee"]),
        "father": _of("Cy Lee", "Di Lee", are=["Bo Lee"]),
        "child": _of("Ann Lee", "Bo Lee", are=["Cy Lee", "Di Lee"]),
        "son": _of("Ann Lee", "Bo Lee", are=["Cy Lee"]),
        "daughter": _of("Ann Lee", "Bo Lee", are=["Di Lee"]),
        "sibling": {"Cy Lee": ["Di Lee"], "Di Lee": ["Cy Lee"]},
        "sister": {"Cy Lee": ["Di Lee"]},
        "brother": {"Di Lee": ["Cy Lee"]},
        "wife": {"Bo Lee": ["Ann Lee"]},
        "husband": {"Ann Lee": ["Bo Lee"]},
        "married": {"Ann Lee": ["Bo Lee"], "Bo Lee": ["Ann Lee"]},
        "friend": {"Ann Lee": ["Ed Oak"], "Di Lee": ["Ed Oak"], "Ed Oak": ["Ann Lee", "Di Lee"]},
    }
    return {name: attributes.get(name, {}) for name in (*RELATIONS, "married")}


def _of(*people: str, are: list[str]) -> dict[str, list[str]]:
    return dict.fromkeys(people, are)


@pytest.fixture
def worlds(small: Path, tmp_path: Path) -> Path:
    """A copy of the folder, to be altered."""
    return Path(shutil.copytree(small, tmp_path / "worlds"))


def differences(report: VerificationReport) -> dict[str, int]:
    return {check.name: check.different for check in report.checks if check.different}


def test_an_unchanged_instance_verifies_without_differences(worlds: Path):
    completed: list[VerificationCheck] = []
    report = verify_world(worlds, "small", completed.append)
    assert report.first_differences == []
    # Three sets of answers, eight details of each question, 46 cells for each of five people, and
    # 45 relations over the instance and over a generated universe.
    assert [str(check) for check in completed] == [
        "3 answers: all equal",
        "24 particulars of questions: all equal",
        "5 solution traces: all equal",
        "230 relation cells: all equal",
        "90 relations by rules: all equal",
        "46 facts under articles: all equal",
        "36 facts in sentences: all equal",
        "136 triples: all equal",
        "3 answers of queries: all equal",
    ]


def of_question(name: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[0].update({name: value})


NOBODY = [{"text": "Nobody Atall", "entity": None}]


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        (of_question("answers", NOBODY), "answers", "stated Nobody Atall, derived Di Lee (Q1000000003)"),
        (of_question("answers", []), "answers", "stated nothing, derived Di Lee (Q1000000003)"),
        (
            of_question("answers", [{"text": "Di Lee", "entity": "Q1000000001"}]),
            "answers",
            "stated Di Lee (Q1000000001)",
        ),
        (of_question("answers", "Di Lee"), "answers", "an unreadable value"),
        (lambda rows: rows[0]["expression"].update(relation="foe"), "answers", "an unreadable value"),
        (lambda rows: rows[0].pop("expression"), "answers", "an unreadable value"),
        (
            of_question("text", "Who?"),
            "particulars of questions",
            "wording of Who? (q0): stated Who?, derived Who is the",
        ),
        (of_question("template", "Who"), "particulars of questions", "template of Who is the sister of"),
        (of_question("difficulty", 9), "particulars of questions", "stated 9, derived 2"),
        (of_question("hops", 9), "particulars of questions", "stated 9, derived 2"),
        (
            of_question("is_aggregation_question", True),  # noqa: FBT003 - the value
            "particulars of questions",
            "rowing? (q0): stated True, derived False",
        ),
        (lambda rows: rows[1].update(type=12), "particulars of questions", "stated 12, derived 31"),
        (lambda rows: rows[1]["prolog"].update(answer="Y_3"), "particulars of questions", "an unreadable value"),
    ],
)
def test_a_changed_question_is_reported(worlds: Path, change: Callable[[Any], None], check: str, message: str):
    change_rows(worlds / "small" / QUESTIONS_FILE, change)
    report = verify_world(worlds, "small", print)
    assert check in differences(report)
    assert message in "\n".join(map(str, report.first_differences))


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        (
            lambda stated: stated["relations"]["sister"].update({"Cy Lee": []}),
            "relation cells",
            "sister of Cy Lee: stated nothing, derived Di Lee",
        ),
        (
            lambda stated: stated["relations"]["aunt"].update({"Nobody": ["Di Lee"]}),
            "relation cells",
            "aunt of Nobody: stated Di Lee, derived nothing",
        ),
        (lambda stated: stated["relations"].pop("aunt"), "relation cells", "relations: stated "),
        (lambda stated: stated["relations"].update(foe={}), "relation cells", "relations: stated "),
        (
            lambda stated: stated["articles"]["Cy Lee"].append(["sister", "Cy Lee", "Ann Lee"]),
            "facts under articles",
            'Cy Lee: stated sister("Cy Lee", "Ann Lee")., derived nothing',
        ),
        (
            lambda stated: stated["articles"].pop("Ed Oak"),
            "facts under articles",
            'Ed Oak: stated nothing, derived dob("Ed Oak", "0975-05-06").',
        ),
        (
            lambda stated: stated["attributes"].update(chess=1),
            "facts under articles",
            "attributes: stated nothing, derived chess",
        ),
        (
            lambda stated: stated["solutions"].update(q1=stated["solutions"]["q2"], q2=stated["solutions"]["q1"]),
            "solution traces",
            'solution trace of What is the occupation of the friend of Ed Oak? (q1): stated {"Y_3": "Ann Lee", ',
        ),
        (
            lambda stated: stated["solutions"]["q1"].pop(),
            "solution traces",
            "number of distinct solution traces of What is the occupation of the friend of Ed Oak? (q1): stated 1, ",
        ),
        (
            lambda stated: stated["solutions"].update(q9=[]),
            "solution traces",
            "questions with solution traces that do not exist: stated q9",
        ),
    ],
)
def test_a_changed_fact_is_reported(worlds: Path, change: Callable[[Any], None], check: str, message: str):
    change_stated(worlds / "small" / STATED_FACTS_FILE, change)
    report = verify_world(worlds, "small", print)
    assert list(differences(report)) == [check]
    assert any(str(difference).startswith(message) for difference in report.first_differences)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("female(Y)", "male(Y)", 'rules of sister: stated nothing, derived sister("Cy Lee", "Di Lee").'),
        ("X\\=Y", "Child\\=Y", "rules of husband: stated husband("),
        (
            "great_aunt(X, Y) :-",
            "second_aunt(X, Y) :-",
            "rules of great_aunt in a generated universe: stated nothing, ",
        ),
        ("second_uncle(X, Y) :-", "% second_uncle(X, Y) :-", "rules of second_uncle in a generated universe"),
        ("cousin(X, Y) :- parent", "cousin(X, Y) :- child", "rules of cousin"),
        ("    female(Y).", "    \\+ male(Y).", "an unreadable value"),
        ("    sibling(X, Y),", "    sister(X, Y),", "the rules of sister need sister itself"),
        (
            "    sibling(X, Y),",
            '    sibling(X, Y), X \\= "Cy Lee",',
            "rules of sister: stated nothing, derived sister(",
        ),
        ("    sibling(X, Y),\n    female(Y).", "    female(X).", "leaves a variable of its head unbound"),
        ("    sibling(X, Y),", "    X \\= Y, sibling(X, Y),", "rules of sister: stated nothing"),
        ("friend(X, Y) :-\n    friend_(Y, X).", "", 'rules of friend: stated nothing, derived friend("'),
    ],
)
def test_a_changed_rule_is_reported(tmp_path: Path, old: str, new: str, message: str):
    folder = small_instance.write(tmp_path / "small")
    facts = (folder / "facts.pl").read_text(encoding="utf-8")
    assert old in facts
    (folder / "facts.pl").write_text(facts.replace(old, new, 1), encoding="utf-8")
    import_instance(tmp_path / "worlds", "small", folder, {})
    report = verify_world(tmp_path / "worlds", "small", print)
    assert list(differences(report)) == ["relations by rules"]
    assert message in "\n".join(map(str, report.first_differences))


def test_a_world_that_was_imported_without_rules_and_traces_still_verifies(worlds: Path):
    def remove(stated: dict[str, Any]) -> None:
        del stated["rules"], stated["solutions"]

    change_stated(worlds / "small" / STATED_FACTS_FILE, remove)
    change_rows(worlds / "small" / QUESTIONS_FILE, lambda rows: [row.pop("is_aggregation_question") for row in rows])
    assert verify_world(worlds, "small", print).different == 0


def test_every_relation_occurs_in_the_universe_that_rules_are_tried_on():
    universe = _make_probe(couples=False).universe
    everyone = np.arange(len(universe), dtype=np.int32)
    assert [name for name, relation in RELATIONS.items() if not len(find_related(universe, relation, everyone))] == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("The sister of Cy Lee is Di Lee.", "The sister of Cy Lee is Ann Lee.", 'stated sister("Cy Lee", "Ann Lee").'),
        ("The sister of Cy Lee is Di Lee.", "Cy Lee has a sister.", "states no relation or attribute of Cy Lee"),
        ("The sister of Cy Lee is Di Lee.", "The sisters of Cy Lee are Di Lee, Ed Oak.", '"Ed Oak")., derived nothing'),
        ("The sister of Cy Lee is Di Lee.", "The sister of Ann Lee is Di Lee.", "states no relation or attribute"),
        ("The sister of Cy Lee is Di Lee.", "", 'stated nothing, derived sister("Cy Lee", "Di Lee").'),
    ],
)
def test_a_changed_sentence_is_reported(worlds: Path, old: str, new: str, message: str):
    change_article(
        worlds / "small",
        "Cy Lee",
        lambda article: replace(
            article, sentences=tuple(new if sentence == old else sentence for sentence in article.sentences)
        ),
    )
    report = verify_world(worlds, "small", print)
    assert list(differences(report)) == ["facts in sentences"]
    assert message in "\n".join(map(str, report.first_differences))


def test_a_missing_article_is_reported(worlds: Path):
    change_article(worlds / "small", "Cy Lee", lambda _: None)
    report = verify_world(worlds, "small", print)
    assert str(report.first_differences[0]) == "number of articles: stated 4, derived 5"
    assert str(report.first_differences[1]) == "Cy Lee: stated nothing, derived an article"


ANN, FRIEND, BO = (
    ox.NamedNode(f"http://www.wikidata.org/{end}")
    for end in ("entity/Q1000000000", "prop/direct/P3342", "entity/Q1000000001")
)


def test_an_extra_or_missing_triple_is_reported(worlds: Path):
    change_graph(worlds / "small", lambda store: store.add(ox.Quad(ANN, FRIEND, BO)))
    report = verify_world(worlds, "small", print)
    question_name = "How many friends does the parent of Cy Lee have? (q2)"
    assert [str(difference) for difference in report.first_differences] == [
        f"graph: stated {ANN} {FRIEND} {BO}, derived nothing",
        f"query of {question_name}: stated 0, 1, derived 0, 2",
    ]
    # Another triple is removed, so that the number of triples is right again.
    removed = ox.Quad(ANN, FRIEND, ox.NamedNode("http://www.wikidata.org/entity/Q1000000004"))
    change_graph(worlds / "small", lambda store: store.remove(removed))
    assert differences(verify_world(worlds, "small", print))["triples"] == 2


def test_another_universe_is_reported_by_every_check(worlds: Path):
    file = worlds / "small" / UNIVERSE_FILE
    universe = Universe.load(file)
    replace(universe, hobby=universe.hobby[::-1].copy(), friends=Friendships(universe.friends.pairs[:1])).save(file)
    report = verify_world(worlds, "small", print)
    assert len(differences(report)) == 6
    assert len({difference.what for difference in report.first_differences}) > 4


def test_a_damaged_file_raises_a_clear_error(worlds: Path):
    for name in (UNIVERSE_FILE, STATED_FACTS_FILE, QUESTIONS_FILE):
        file = worlds / "small" / name
        whole = file.read_bytes()
        for broken in (whole[: len(whole) // 2], whole[:30] + b'"{' + whole[32:]):
            file.write_bytes(broken)
            with pytest.raises(WorldError, match=name):
                verify_world(worlds, "small", print)
        file.write_bytes(whole)
    assert verify_world(worlds, "small", print).first_differences == []


def test_missing_questions_are_reported(worlds: Path):
    change_rows(worlds / "small" / QUESTIONS_FILE, list.clear)
    report = verify_world(worlds, "small", print)
    assert [str(difference) for difference in report.first_differences] == [
        "number of questions: stated 3, derived 0",
        "questions with solution traces that do not exist: stated q0, q1, q2, derived nothing",
    ]


def test_formatted_values_parse_back(worlds: Path):
    values = ValueCodec(Universe.load(worlds / "small" / UNIVERSE_FILE))
    assert [values.parse_value("person", values.format_value("person", row)) for row in range(5)] == list(range(5))
