"""Parsing of JSON replies inside other text, and separation of reasoning."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from showhow.llm.errors import ChatBadRequest
from showhow.llm.limitations import (
    JSON_OBJECT_UNSUPPORTED,
    LOGPROBS_UNSUPPORTED,
    SCHEMA_UNSUPPORTED,
    TEMPERATURE_UNSUPPORTED,
)
from showhow.llm.openai_compatible import align_logprobs
from showhow.llm.structured_output import (
    ReplyParseError,
    mean_field_logprobs,
    parse_reply,
    request_json_reply,
    split_reasoning,
    to_strict_schema,
)
from showhow.llm.types import ChatReply, Message, TokenLogprob
from showhow.llm.usage import Usage
from showhow.reasoners.skills.values import AnswersReply
from tests.servers.model import Fails, ModelServer, Reply, Request, Says


class AnswerReply(BaseModel):
    answer: str | None
    quotes: list[str]


GOOD = AnswerReply(answer="Saltmouth", quotes=["from {Saltmouth}"])


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
        '```json\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}\n```',
        'Here it is, {as asked}:\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"],}\nIt helps {"answer": 1}',
        '<think>maybe {"answer": "no", "quotes": []}</think>\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
        '{"quotes": 3} {"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
    ],
)
def test_the_json_object_is_found_within_other_text(text: str):
    assert parse_reply(text, AnswerReply, "scripted") == GOOD


def test_strings_may_hold_line_breaks():
    assert parse_reply('{"answer": "a\nb", "quotes": []}', AnswerReply, "scripted").answer == "a\nb"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Saltmouth.", "no JSON object"),
        ("", "no JSON object"),
        ('{"answer": "Saltmouth"', "no JSON object"),
        ('{"answer": "Saltmouth"}', "quotes: field required"),
        ('{"answer": null, "quotes": {"x": 1}}', r"quotes\.0: input should be a valid string"),
        ('{"answer": 1, "quotes": [2, "x", 3]}', r"answer: .*; quotes\.0: .*; quotes\.2: "),
        ('{"answer": null, "quotes": [{"text": 1}]}', r"quotes\.0: input should be a valid string"),
        ('{"quotes": 3} {"answer": "Saltmouth", "quotes": [3]}', r"quotes\.0: input should be a valid string"),
        ('<think>{"answer": null, "quotes": []}', "no JSON object"),
        ("{" * 10_000, "no JSON object"),
        ('{"answer": ' + "[" * 100_000, "no JSON object"),
        ('{"a":' * 50_000, "no JSON object"),
    ],
)
def test_the_error_of_a_reply_says_what_is_wrong(text: str, wrong: str):
    with pytest.raises(ReplyParseError, match=wrong):
        parse_reply(text, AnswerReply, "scripted")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Lisbon", ("", "Lisbon")),
        ("<think>Porto?\nNo.</think>\n\nLisbon", ("Porto?\nNo.", "Lisbon")),
        ("<THINKING>Porto?</THINKING> Lisbon", ("Porto?", "Lisbon")),
        ("Porto?\nNo.\n</think>\n\nLisbon", ("Porto?\nNo.", "Lisbon")),
        ("<think>one</think>It is <think>two</think>Lisbon", ("one\ntwo", "It is Lisbon")),
        ("one</think><think>two</think>Lisbon", ("one\ntwo", "Lisbon")),
        ("<think>and on and on", ("and on and on", "")),
        ("<think>\n\n</think>\n\nLisbon", ("", "Lisbon")),
        ("I think of 1 < 2 and of </thing>.", ("", "I think of 1 < 2 and of </thing>.")),
    ],
)
def test_reasoning_is_separated_from_the_reply(text: str, parts: tuple[str, str]) -> None:
    assert split_reasoning(text) == parts


@given(st.text(), st.text())
def test_text_after_closed_reasoning_is_the_whole_reply(thought: str, visible: str) -> None:
    if "<" not in thought + visible:
        assert split_reasoning(f"<think>{thought}</think>{visible}") == (thought.strip(), visible.strip())


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('{"Answer": "Rome", "quote": "x"}', AnswerReply(answer="Rome", quotes=["x"])),
        ('{"my_answer": "Rome", "quotes": []}', AnswerReply(answer="Rome", quotes=[])),
        ('{"answer": "Rome", "quotes": "[\\"x\\"]", "sure": true}', AnswerReply(answer="Rome", quotes=["x"])),
        # Two fields fit the missing one, or none does, or the object is a part of one that broke off.
        ('{"city": "Rome", "land": "Italy", "quotes": []}', None),
        ('{"answer": "Rome", "sure": true}', None),
        ('{"answer": "Rome", "words": [1]}', None),
        ('{"all": [{"city": "Rome", "quotes": []}', None),
        ('{"reasons": ["I know it."], "unknown": true}', None),
        ('{"steps": [{"thought": "I look it up."}]}', None),
    ],
)
def test_a_form_is_corrected_only_where_there_is_no_choice(text: str, reply: BaseModel | None):
    reply_type = AnswersReply if "unknown" in text or "steps" in text else AnswerReply
    if reply is None:
        with pytest.raises(ReplyParseError):
            parse_reply(text, reply_type, "scripted")
    else:
        assert parse_reply(text, reply_type, "scripted") == reply


class Part(BaseModel):
    name: str
    note: str | None = None


class Nested(BaseModel):
    """Parts."""

    parts: list[Part] = Field(min_length=1, description="the parts")
    known: bool = True


ASKED = [Message("user", "Which city?")]
ANSWER = '{"answer": "Saltmouth", "quotes": []}'


def test_a_schema_requires_all_fields_and_has_no_references():
    part = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["name", "note"],
        "additionalProperties": False,
    }
    assert to_strict_schema(Nested) == {
        "type": "object",
        "properties": {"parts": {"type": "array", "items": part, "minItems": 1}, "known": {"type": "boolean"}},
        "required": ["parts", "known"],
        "additionalProperties": False,
    }


def test_the_server_is_sent_the_schema():
    with ModelServer([Says(ANSWER)]) as server:
        assert request_json_reply(server.chat(), ASKED, AnswerReply).text == ANSWER
    response_format = server.requests[0].body["response_format"]
    assert response_format["json_schema"]["schema"] == to_strict_schema(AnswerReply)
    assert (response_format["type"], response_format["json_schema"]["strict"]) == ("json_schema", True)


@pytest.mark.filterwarnings("ignore:.*structured output feature:UserWarning")
@pytest.mark.parametrize(
    "refusal",
    [
        Fails(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        Fails(422, "extra fields not permitted: response_format"),
        Fails(500, "failed to parse grammar"),
        Fails(501, "not implemented"),
    ],
    ids=str,
)
def test_a_server_without_schemas_is_asked_by_the_prompt_alone_and_that_is_remembered(refusal: Fails):
    def script(request: Request) -> Reply:
        return refusal if "response_format" in request.body else Says(ANSWER)

    with ModelServer(script) as server:
        chat = server.chat()
        for _ in range(3):
            assert request_json_reply(chat.with_new_meter(), ASKED, AnswerReply).text == ANSWER
    formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert formats == ["json_schema", "json_object", None, None, None]


def test_another_bad_request_is_not_taken_for_a_server_without_schemas():
    with ModelServer([*[Fails(400, "no")] * 3, Says(ANSWER)]) as server:
        chat = server.chat()
        with pytest.raises(ChatBadRequest):
            request_json_reply(chat, ASKED, AnswerReply)
        request_json_reply(chat, ASKED, AnswerReply)
    assert server.requests[3].body["response_format"]["type"] == "json_schema"


@pytest.mark.filterwarnings("ignore:.*structured output feature:UserWarning")
@pytest.mark.parametrize(
    ("refused", "limitations"),
    [
        ((), set()),
        (("temperature",), {TEMPERATURE_UNSUPPORTED}),
        (("response_format",), {SCHEMA_UNSUPPORTED, JSON_OBJECT_UNSUPPORTED}),
        (
            ("temperature", "response_format"),
            {TEMPERATURE_UNSUPPORTED, SCHEMA_UNSUPPORTED, JSON_OBJECT_UNSUPPORTED},
        ),
    ],
    ids=["nothing", "temperature", "schema", "both"],
)
def test_only_what_the_server_refuses_is_left_out_and_that_is_remembered(
    refused: tuple[str, ...], limitations: set[str]
):
    def script(request: Request) -> Reply:
        return Fails(400, "unsupported value") if any(name in request.body for name in refused) else Says(ANSWER)

    with ModelServer(script) as server:
        chat = server.chat()
        request_json_reply(chat, ASKED, AnswerReply, 0.7)
        first = len(server.requests)
        assert request_json_reply(chat, ASKED, AnswerReply, 0.7).text == ANSWER
    assert first <= 6
    assert len(server.requests) == first + 1
    last = server.requests[-1].body
    assert {name for name in ("temperature", "response_format") if name not in last} == set(refused)
    assert last.get("temperature", 0.7) == 0.7
    assert chat.known_limitations == limitations


def test_a_request_without_a_temperature_leaves_it_to_the_profile():
    with ModelServer([Says(ANSWER)]) as server:
        request_json_reply(server.chat(), ASKED, AnswerReply)
    assert "temperature" not in server.requests[0].body


def test_the_schema_is_part_of_what_is_stored_of_a_request():
    stored: list[dict[str, Any]] = []

    class Recorder:
        def take_unused_reply(self, request: Any) -> None:  # noqa: ARG002 - nothing was stored before
            return None

        def begin(self, request: Any, _most: Any) -> None:
            stored.append(request.parameters)

        def complete(self, handle: Any, reply: Any) -> None:
            pass

        def fail(self, handle: Any, error: Any) -> None:
            pass

    with ModelServer([Says(ANSWER)] * 2) as server:
        chat = server.chat().recording(Recorder())
        request_json_reply(chat, ASKED, AnswerReply)
        chat.ask(ASKED)
    assert stored[0].pop("reply_schema") == to_strict_schema(AnswerReply)
    assert stored[0] == stored[1]


def in_tokens(*scored: tuple[str, float | None]) -> Says:
    return Says("".join(token for token, _ in scored), logprobs=scored)


LIKELY = in_tokens(
    ('{"', -0.5), ("answer", -0.5), ('": ', -0.5), ('"Zü', -1.0), ('rich"', -3.0), (', "quotes": [', -0.5),
    ('"a"', -0.25), (", ", -0.5), ('"', -2.0), ("b,]}", -4.0), ('"', -6.0), ("]}", -0.5),
)  # fmt: skip


def test_the_mean_log_probability_is_that_of_the_tokens_of_the_field():
    with ModelServer([LIKELY]) as server:
        chat = server.chat()
        reply = request_json_reply(chat, ASKED, AnswerReply, logprobs=True)
        assert server.requests[0].body["logprobs"] is True
    assert mean_field_logprobs(reply, "answer") == (-2.0,)
    assert mean_field_logprobs(reply, "quotes") == (-0.25, -4.0)
    assert mean_field_logprobs(reply, "other") is None
    assert chat.known_limitations == set()


@pytest.mark.parametrize("before", ['<think>{"answer": 1} é</think>', "Here it is:\n```json\n", "  \n"])
def test_text_before_the_object_does_not_move_the_tokens(before: str):
    scored = LIKELY.logprobs or ()
    with ModelServer([in_tokens((before, -9.0), *scored)]) as server:
        reply = request_json_reply(server.chat(), ASKED, AnswerReply, logprobs=True)
    assert mean_field_logprobs(reply, "answer") == (-2.0,)
    assert mean_field_logprobs(reply, "quotes") == (-0.25, -4.0)


def test_a_token_without_a_log_probability_leaves_only_its_field_without_a_mean():
    for missing in (None, float("-inf")):
        scored = [(piece, missing if piece == "b,]}" else logprob) for piece, logprob in LIKELY.logprobs or ()]
        with ModelServer([in_tokens(*scored)]) as server:
            chat = server.chat()
            reply = request_json_reply(chat, ASKED, AnswerReply, logprobs=True)
        assert mean_field_logprobs(reply, "answer") == (-2.0,)
        assert mean_field_logprobs(reply, "quotes") == (-0.25, None)
        assert chat.known_limitations == set()


def test_tokens_that_do_not_spell_the_text_give_no_mean_but_teach_no_limitation():
    cut = Says(LIKELY.text, logprobs=(LIKELY.logprobs or ())[:-1])
    with ModelServer([cut]) as server:
        chat = server.chat()
        reply = request_json_reply(chat, ASKED, AnswerReply, logprobs=True)
    assert (reply.logprobs, mean_field_logprobs(reply, "answer")) == ((), (None,))
    assert chat.known_limitations == set()


@pytest.mark.parametrize("refusal", [Fails(400, "unknown field"), None], ids=["refused", "ignored"])
def test_a_server_without_log_probabilities_is_asked_for_them_once(refusal: Fails | None):
    def script(request: Request) -> Reply:
        return refusal if refusal is not None and "logprobs" in request.body else Says(LIKELY.text)

    with ModelServer(script) as server:
        chat = server.chat()
        replies = [request_json_reply(chat, ASKED, AnswerReply, 0.7, logprobs=True) for _ in range(2)]
    asked = ["logprobs" in request.body for request in server.requests]
    assert asked == ([True, False, False] if refusal is not None else [True, False])
    assert [mean_field_logprobs(reply, "answer") for reply in replies] == [None, None]
    assert chat.known_limitations == {LOGPROBS_UNSUPPORTED}


@given(
    st.lists(st.tuples(st.text("aü€😀 ", min_size=1, max_size=4), st.floats(-9, 0)), min_size=1, max_size=12),
    st.data(),
)
def test_tokens_that_are_parts_of_characters_cover_the_text_like_whole_ones(
    words: list[tuple[str, float]], data: st.DataObject
):
    text = "".join(word for word, _ in words)
    encoded = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(encoded) - 1)), max_size=6)) | {0, len(encoded)})
    pieces = [encoded[start:end] for start, end in pairwise(cuts)]
    tokens = [{"token": "?", "bytes": list(piece), "logprob": -float(place)} for place, piece in enumerate(pieces)]
    aligned = align_logprobs({"content": tokens}, text)
    assert aligned is not None
    reply = ChatReply(text, (), Usage(), "stop", logprobs=aligned)
    # Brute force: the tokens of which some byte belongs to a character.
    owners = [place for place, piece in enumerate(pieces) for _ in piece]
    for start in range(len(text)):
        first, last = len(text[:start].encode()), len(text[: start + 1].encode())
        expected = {-float(place) for place in owners[first:last]}
        assert reply.mean_logprob(start, start + 1) == pytest.approx(sum(expected) / len(expected))
    assert reply.mean_logprob(0, len(text)) == pytest.approx(-(len(pieces) - 1) / 2)


@pytest.mark.parametrize(
    "token",
    [
        *(None, "a", {}, {"token": None}, {"bytes": 10**12}, {"token": "a", "bytes": [256]}, {"bytes": {"a": 1}}),
        *({"token": "a", "logprob": odd} for odd in (10**400, -(10**400), float("nan"), float("-inf"), "x", True)),
    ],
    ids=lambda token: str(token)[:40],
)
def test_odd_tokens_of_a_server_have_no_log_probability(token: object):
    tokens = [{"token": "a", "bytes": [97], "logprob": -0.5}, token, {"token": "\ud800", "logprob": -1.0}]
    aligned = align_logprobs({"content": tokens}, "a")
    assert aligned is not None
    assert all(-10 < entry.logprob <= 1 for entry in aligned)


def test_a_gap_between_tokens_leaves_its_characters_without_a_mean():
    reply = ChatReply("abcd", (), Usage(), "stop", logprobs=(TokenLogprob(0, 2, -1.0), TokenLogprob(3, 4, -2.0)))
    assert [reply.mean_logprob(*span) for span in ((0, 2), (1, 2), (1, 3), (3, 4), (0, 4))] == [-1, -1, None, -2, None]
