"""The form of a skill's reply: every recorded reply comes back from its fields and tables as it was."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from showhow.app.pages.ask.reply_form import (
    JSON_TEXT,
    LIST,
    OBJECT,
    TABLE,
    ReplyField,
    from_rows,
    list_meanings,
    list_reply_fields,
    to_rows,
)
from showhow.fiction.universe.options import GenerationOptions
from showhow.reasoners.atomr.skills import PlanReply
from showhow.reasoners.baselines.graph_skills import SCORE_FACTS, SCORE_RELATIONS
from showhow.reasoners.geek.skills import DecomposeReply
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import read_reply
from tests.oracles.test_skills import Ground, make_ground

OPTIONS = GenerationOptions(people=80, seed=9, depth=4, per_template=1, split="text=50,graph=35,web=15")


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS)


def pass_through_form(fields: tuple[ReplyField, ...], document: Any) -> dict[str, Any]:
    """The document as the form would give it back without a change."""
    passed = {}
    for field in fields:
        value = document.get(field.name)
        if field.kind == TABLE:
            passed[field.name] = from_rows(field, to_rows(field, value or ()))
        elif field.kind == OBJECT and value is not None:
            passed[field.name] = pass_through_form(field.fields, value)
        elif value is not None:
            passed[field.name] = value
    return passed


@pytest.mark.parametrize("method", [name for name, entry in REASONERS.items() if entry.skills])
def test_every_recorded_reply_comes_back_as_it_was(ground: Ground, method: str):
    skills = {skill.reference: skill for skill in REASONERS[method].skills}
    passed = set()
    for question in ground.questions[::4]:
        _, recorder = ground.run(method, question, ground.oracle(question))
        for step in recorder.steps:
            reply = read_reply(step)
            if step.tool is None and step.skill in skills and reply is not None:
                reply_type: type[BaseModel] = skills[step.skill].reply_type
                again = pass_through_form(list_reply_fields(reply_type), reply)
                assert reply_type.model_validate(again) == reply_type.model_validate(reply), step.skill
                passed.add(step.skill)
    assert len(passed) >= 3


def test_fields_are_inputs_and_tables_and_nothing_of_a_registered_skill_is_json():
    def kinds(fields: tuple[ReplyField, ...]) -> set[str]:
        return {field.kind for field in fields} | {kind for field in fields for kind in kinds(field.fields)}

    for entry in REASONERS.values():
        for skill in entry.skills:
            assert JSON_TEXT not in kinds(list_reply_fields(skill.reply_type)), skill.name
    (nodes,) = list_reply_fields(PlanReply)
    assert [column.name for column in nodes.columns if column.kind == LIST] == ["children"]
    assert [table.name for table in nodes.inner_tables] == ["args"]


def test_rows_of_an_inner_table_belong_to_the_row_that_they_name():
    (nodes,) = list_reply_fields(PlanReply)
    plan = {
        "nodes": [
            {"id": 0, "question": "Who?", "children": [7, 3]},
            {"id": 7, "question": "Who is Ada?", "op": "Search", "args": [{"text": "Ada"}]},
            {
                "id": 3,
                "question": "Who is the mother of [7]?",
                "op": "Relate",
                "args": [{"ref": 7}, {"text": "mother"}],
            },
        ]
    }
    tables = to_rows(nodes, plan["nodes"])
    assert [row["row"] for row in tables["args"]] == [7, 3, 3]
    tables["args"][2]["text"] = "father"
    tables["nodes"].append(dict.fromkeys(tables["nodes"][0]) | {"from_last": False})
    changed = PlanReply.model_validate({"nodes": from_rows(nodes, tables)})
    assert str(changed).splitlines()[2].endswith("<- Relate([7], father)")
    tables["nodes"][0]["children"] = "7, three"
    assert from_rows(nodes, tables)[0]["children"] == [7, "three"]
    tables["nodes"][0]["children"] = f"--7, {'7' * 5_000}"
    assert from_rows(nodes, tables)[0]["children"] == ["--7", "7" * 5_000]


def test_objects_that_hold_only_a_list_are_made_from_the_rows_of_the_list():
    (branches,) = list_reply_fields(DecomposeReply)
    first_steps = [{"question": "a?", "pseudo": "b"}, {"question": "c?"}]
    reply = {"branches": [{"steps": first_steps}, {"steps": [{"question": "d?"}]}]}
    tables = to_rows(branches, reply["branches"])
    assert [(row["row"], row["question"]) for row in tables["steps"]] == [(1, "a?"), (1, "c?"), (2, "d?")]
    again = DecomposeReply.model_validate({"branches": from_rows(branches, tables)})
    assert again == DecomposeReply.model_validate(reply)


def list_all_fields(fields: tuple[ReplyField, ...]) -> list[ReplyField]:
    return [*fields, *(inner for field in fields for inner in list_all_fields(field.fields))]


SKILLS = {skill.reference: skill for entry in REASONERS.values() for skill in entry.skills}


@pytest.mark.parametrize("reference", SKILLS)
def test_every_field_has_a_help_sentence_that_no_request_contains(reference: str):
    reply_type = SKILLS[reference].reply_type
    schema = reply_type.model_json_schema()
    for definition in (schema, *schema.get("$defs", {}).values()):
        assert not any("description" in entry for entry in definition["properties"].values())
    for field in list_all_fields(list_reply_fields(reply_type)):
        assert field.help.endswith("."), field.name


def test_a_draft_is_a_reply_that_the_skill_accepts(ground: Ground):
    """For each recorded request of a skill with a draft; it comes back from the form as it was."""
    drafted = set()
    for method in ("atomr", "chain-of-knowledge", "tog", "pog"):
        question = next(question for question in ground.questions if question.kind == "composition")
        _, recorder = ground.run(method, question, ground.oracle(question))
        for step in recorder.steps:
            skill = None if step.tool else REASONERS[method].find_skill(step.skill)
            if skill is None or skill.draft is None:
                continue
            request = skill.request_type.model_validate(step.arguments)
            draft = skill.draft(request)
            assert skill.check(request, draft) is None
            document = draft.model_dump(mode="json", exclude_none=True)
            assert (
                skill.reply_type.model_validate(pass_through_form(list_reply_fields(skill.reply_type), document))
                == draft
            )
            drafted.add(skill.name)
    assert drafted == {skill.name for skill in SKILLS.values() if skill.draft is not None}


def test_ids_of_a_request_are_explained_by_their_labels_and_facts(ground: Ground):
    question = next(question for question in ground.questions if question.kind == "composition")
    _, recorder = ground.run("tog", question, ground.oracle(question))
    relations = next(step for step in recorder.steps if step.skill == SCORE_RELATIONS.reference)
    offered = relations.arguments["relations"]
    assert offered
    assert list_meanings(relations.arguments) == {entry["id"]: entry["label"] for entry in offered}
    facts = next(step for step in recorder.steps if step.skill == SCORE_FACTS.reference)
    meanings = list_meanings(facts.arguments)
    for entry in facts.arguments["candidates"]:
        assert set(meanings[entry["id"]].split(" | ")) == {
            entry["known"]["text"],
            entry["relation"]["label"],
            entry["other"]["text"],
        }
