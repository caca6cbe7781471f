"""A handmade instance of five people, in each of the layouts."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from showhow.fiction.phantomwiki.articles import generate_rules

FACTS = """
:- dynamic friend_/2.
:- use_module(library(x)).

sister(X, Y) :-
    sibling(X, Y),
    female(Y).

type("Ann Lee", person).
type("Bo Lee", person).
type("Cy Lee", person).
type("Di Lee", person).
type("Ed Oak", person).

gender("Ann Lee", "female").
gender("Bo Lee", "male").
gender("Cy Lee", "male").
gender("Di Lee", "female").
gender("Ed Oak", "male").

parent("Cy Lee", "Ann Lee").
parent("Cy Lee", "Bo Lee").
parent("Di Lee", "Bo Lee").
parent("Di Lee", "Ann Lee").

dob("Ann Lee", "0950-01-02").
dob("Bo Lee", "0949-03-04").
dob("Cy Lee", "0975-05-06").
dob("Di Lee", "0977-07-08").
dob("Ed Oak", "0975-05-06").

job("Ann Lee", "baker").
job("Bo Lee", "judge").
job("Cy Lee", "baker").
job("Di Lee", "miller").
job("Ed Oak", "judge").

hobby("Ann Lee", "chess").
hobby("Bo Lee", "rowing").
hobby("Cy Lee", "rowing").
hobby("Di Lee", "checkers (draughts)").
hobby("Ed Oak", "chess").

friend_("Ed Oak", "Di Lee").
friend_("Ann Lee", "Ed Oak").

attribute("baker").
attribute("judge").
attribute("baker").
attribute("miller").
attribute("judge").
attribute("chess").
attribute("rowing").
attribute("rowing").
attribute("checkers (draughts)").
attribute("chess").

friend(X, Y) :-
    friend_(X, Y).
friend(X, Y) :-
    friend_(Y, X).
married(X, Y) :-
    parent(Child, X),
    parent(Child, Y),
    X\\=Y.
""" + "\n".join(rule for rule in generate_rules() if not rule.startswith(("friend(", "married(", "sister(", ":-")))
_RELATIVES = {
    "Ann Lee": {"daughter": ["Di Lee"], "friend": ["Ed Oak"], "husband": ["Bo Lee"], "son": ["Cy Lee"]},
    "Bo Lee": {"daughter": ["Di Lee"], "son": ["Cy Lee"], "wife": ["Ann Lee"]},
    "Cy Lee": {"father": ["Bo Lee"], "mother": ["Ann Lee"], "sister": ["Di Lee"]},
    "Di Lee": {"brother": ["Cy Lee"], "father": ["Bo Lee"], "friend": ["Ed Oak"], "mother": ["Ann Lee"]},
    "Ed Oak": {"friend": ["Di Lee", "Ann Lee"]},
}
_HEADINGS = {
    "Family": ("sister", "brother", "mother", "father", "son", "daughter", "wife", "husband"),
    "Friends": ("friend",),
}


def articles() -> list[dict[str, Any]]:
    """Records of the articles."""
    return [_article(title, facts) for title, facts in _RELATIVES.items()]


def _article(title: str, relatives: dict[str, list[str]]) -> dict[str, Any]:
    lines, facts = [f"# {title}", ""], []
    for heading, relations in _HEADINGS.items():
        lines.append(f"## {heading}")
        for relation in relations:
            people = relatives.get(relation, [])
            facts += [f'{relation}("{title}", "{person}").' for person in people]
            if people:
                verb = f"{relation} of {title} is" if len(people) == 1 else f"{relation}s of {title} are"
                lines.append(f"The {verb} {', '.join(people)}.")
        lines.append("")
    lines.append("## Attributes")
    for name, words in (("dob", "date of birth"), ("job", "occupation"), ("hobby", "hobby"), ("gender", "gender")):
        value = FACTS.split(f'{name}("{title}", "')[1].split('"', maxsplit=1)[0]
        facts.append(f'{name}("{title}", "{value}").')
        lines.append(f"The {words} of {title} is {value}.")
    return {"title": title, "article": "\n".join([*lines, ""]), "facts": facts}


def questions() -> list[dict[str, Any]]:
    """Records of one question per kind, with handmade answers."""
    who = {
        "question": "Who is the sister of the person whose hobby is rowing?",
        "answer": ["Di Lee"],
        "prolog": {"query": ["sister(Y_4, Y_2)", 'hobby(Y_4, "rowing")'], "answer": "Y_2"},
        "template": "Who is|the|<relation>_3|of|the person whose|<attribute_name>_5|is|<attribute_value>_5|?",
        "type": 14,
        "solution_traces": '[{"Y_2": "Di Lee", "Y_4": "Cy Lee"}]',
    }
    what = {
        "question": "What is the occupation of the friend of Ed Oak?",
        "answer": ["baker", "miller"],
        "prolog": {"query": ["job(Y_3, Y_2)", 'friend("Ed Oak", Y_3)'], "answer": "Y_2"},
        "template": "What is|the|<attribute_name>_3|of|the|<relation>_4|of|<name>_5|?",
        "type": 31,
        "solution_traces": '[{"Y_3": "Ann Lee", "Y_2": "baker"}, {"Y_3": "Di Lee", "Y_2": "miller"}]',
    }
    counted = ["aggregate_all(count, distinct(friend(Y_3, Y_1)), Count_1)", 'parent("Cy Lee", Y_3)']
    many = {
        "question": "How many friends does the parent of Cy Lee have?",
        "answer": ["0", "1"],
        "prolog": {"query": counted, "answer": "Count_1"},
        "template": "How many|<relation_plural>_2|does|the|<relation>_4|of|<name>_5|have|?",
        "type": 47,
        "solution_traces": '[{"Y_3": "Ann Lee", "Count_1": 1}, {"Y_3": "Bo Lee", "Count_1": 0}]',
    }
    records = enumerate((who, what, many))
    return [
        {
            **template,
            "id": f"q{n}",
            "template": str(template["template"]).split("|"),
            "difficulty": 2,
            "is_aggregation_question": template is many,
        }
        for n, template in records
    ]


def write(folder: Path) -> Path:
    """Write the layout of the published generator with its JSON options."""
    folder.mkdir(parents=True)
    (folder / "facts.pl").write_text(FACTS, encoding="utf-8")
    (folder / "articles.json").write_text(json.dumps(articles(), indent=4), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions(), indent=4), encoding="utf-8")
    return folder


def write_as_texts(folder: Path) -> Path:
    """Write the default layout of the published generator."""
    folder.mkdir()
    (folder / "facts.pl").write_text(FACTS, encoding="utf-8")
    for part in ("articles", "questions"):
        (folder / part).mkdir()
    for record in articles():
        (folder / "articles" / f"{record['title']}.txt").write_text(record["article"], encoding="utf-8")
        facts = "\n".join(record["facts"])
        (folder / "articles" / f"{record['title']}_facts.txt").write_text(facts, encoding="utf-8")
    for record in questions():
        text = json.dumps([record], indent=4)
        (folder / "questions" / f"type{record['type']}.json").write_text(text, encoding="utf-8")
    return folder


def write_packed(folder: Path) -> Path:
    """Write gzipped files with questions in JSON Lines."""
    folder.mkdir()
    (folder / "facts.pl").write_text(FACTS, encoding="utf-8")
    lines = "".join(
        json.dumps({**template, "template": " ".join(template["template"])}) + "\n" for template in questions()
    )
    (folder / "questions.slim.jsonl").write_text(lines, encoding="utf-8")
    (folder / "articles.json.gz").write_bytes(gzip.compress(json.dumps(articles()).encode()))
    return folder


def write_for_the_hub(folder: Path, *splits: str) -> Path:
    """Write the layout of the published data set on the hub."""
    parts = {
        "database": [{"content": FACTS}],
        "text-corpus": articles(),
        "question-answer": [{**question, "solution_traces": "[]"} for question in questions()],
    }
    for part, records in parts.items():
        (folder / part).mkdir(parents=True)
        for split in splits:
            table = pyarrow.Table.from_pylist(records)
            pyarrow.parquet.write_table(table, folder / part / f"{split}-00000-of-00001.parquet")
    return folder
