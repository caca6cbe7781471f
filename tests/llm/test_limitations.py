"""What a server refuses is learnt once, for its profile."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.errors import ChatError, ChatServerError
from showhow.llm.limitations import (
    EMPTY_TEXT_UNSUPPORTED,
    LIMITATIONS_FILE_NAME,
    PARALLEL_CALLS_UNSUPPORTED,
    SCHEMA_UNSUPPORTED,
    ServerLimitations,
    split_parallel_calls,
)
from showhow.llm.structured_output import request_json_reply
from showhow.llm.types import Message, ModelProfile, ModelToolCall
from tests.servers.model import Fails, ModelServer, Reply, Request, Says
from tests.servers.strict import make_script

ASKED = [Message("user", "Which city?")]
CALLS = tuple(ModelToolCall(f"c{number}", "read", {"title": title}) for number, title in enumerate(("Rome", "Paris")))
RESULTS = [Message("tool", call.id, answers=call.id) for call in CALLS]
HISTORY = [*ASKED, Message("assistant", "", CALLS), *RESULTS]


SCHEMA, JSON = "json_schema", "json_object"


class CityReply(BaseModel):
    city: str


def sent_formats(server: ModelServer) -> list[str | None]:
    """The form of the reply that each request asked for."""
    return [request.body.get("response_format", {}).get("type") for request in server.requests]


@pytest.fixture(autouse=True)
def quick_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits between attempts."""
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.001)


def build_chat(server: ModelServer, home: Path, **changes: Any) -> ChatClient:
    """A client as a new process has it."""
    profile = replace(ModelProfile("scripted", server.url, seconds=60.0, name="own"), **changes)
    return build_chat_client(profile, limitations_file=home / LIMITATIONS_FILE_NAME)


def test_a_strict_server_takes_the_messages_with_calls_at_once():
    with ModelServer(make_script("Paris.")) as server:
        assert server.chat().ask(HISTORY).text == "Paris."
    assert [message.get("content") for message in server.requests[0].body["messages"]] == [
        "Which city?",
        "",
        "c0",
        "c1",
    ]


@pytest.mark.parametrize(
    ("abilities", "limitations"),
    [
        ({"empty_text": False}, {EMPTY_TEXT_UNSUPPORTED}),
        ({"parallel_calls": False}, {PARALLEL_CALLS_UNSUPPORTED}),
        ({"parallel_calls": False, "empty_text": False}, {PARALLEL_CALLS_UNSUPPORTED, EMPTY_TEXT_UNSUPPORTED}),
    ],
)
def test_the_form_of_messages_that_a_server_takes_is_learnt_once(
    tmp_path: Path, abilities: dict[str, bool], limitations: set[str]
):
    with ModelServer(make_script("Paris.", **abilities)) as server:
        chat = build_chat(server, tmp_path)
        assert chat.ask(HISTORY).text == "Paris."
        assert chat.known_limitations == limitations
        before = len(server.requests)
        assert build_chat(server, tmp_path).ask(HISTORY).text == "Paris."
    assert len(server.requests) == before + 1


@pytest.mark.parametrize(
    ("status", "formats"), [(400, [SCHEMA, JSON, None]), (500, [SCHEMA, SCHEMA, SCHEMA, None, JSON])]
)
def test_a_schema_that_is_refused_in_any_words_is_not_sent_again_to_the_same_model_and_address(
    tmp_path: Path, status: int, formats: list[str | None]
):
    def script(request: Request) -> Reply:
        is_refused = "response_format" in request.body
        return Fails(status, "'NoneType' object is not iterable") if is_refused else Says('{"city": "Paris"}')

    with ModelServer(script) as server:
        for _ in range(2):
            request_json_reply(build_chat(server, tmp_path), ASKED, CityReply)
        assert sent_formats(server) == [*formats, None]
        assert SCHEMA_UNSUPPORTED in build_chat(server, tmp_path, temperature=0.5).known_limitations
        changes: list[dict[str, Any]] = [{"model": "other"}, {"base_url": "http://127.0.0.1:9/v1"}, {"name": "other"}]
        for change in changes:
            assert build_chat(server, tmp_path, **change).known_limitations == set()


@pytest.mark.parametrize("words", ["json_schema is not supported", "Input should be 'text' or 'json_object'", "no"])
@pytest.mark.parametrize("status", [400, 422, 500, 501])
def test_a_server_that_knows_json_but_no_schemas_is_asked_for_json_once_and_for_all(
    tmp_path: Path, status: int, words: str
):
    def script(request: Request) -> Reply:
        is_refused = request.body.get("response_format", {}).get("type") == SCHEMA
        return Fails(status, words) if is_refused else Says('{"city": "Paris"}')

    with ModelServer(script) as server:
        for _ in range(2):
            assert request_json_reply(build_chat(server, tmp_path), ASKED, CityReply).text == '{"city": "Paris"}'
        assert build_chat(server, tmp_path).known_limitations == {SCHEMA_UNSUPPORTED}
    assert sent_formats(server)[-2:] == [JSON, JSON]
    assert sent_formats(server).count(JSON) == 2


def test_a_server_that_always_fails_teaches_nothing(tmp_path: Path):
    with ModelServer(lambda _: Fails(500, "out of order")) as server:
        chat = build_chat(server, tmp_path)
        with pytest.raises(ChatServerError, match="out of order"):
            request_json_reply(chat, HISTORY, CityReply)
        assert chat.known_limitations == set()
    assert not (tmp_path / LIMITATIONS_FILE_NAME).exists()
    # Three times as it was, and once without each of what it can do without: texts beside calls, then the schema too.
    assert len(server.requests) <= 6


def test_what_was_learnt_is_forgotten_for_one_profile_only_and_a_damaged_file_is_written_anew(tmp_path: Path):
    file = tmp_path / LIMITATIONS_FILE_NAME
    file.write_text("{damaged")
    one, two = (ServerLimitations(ModelProfile("scripted", name=name), file) for name in ("one", "two"))
    one.learn([SCHEMA_UNSUPPORTED])
    two.learn([PARALLEL_CALLS_UNSUPPORTED])
    one.forget()
    assert one == set()
    assert list(json.loads(file.read_text())) == ["two"]
    assert ServerLimitations(ModelProfile("scripted", name="two"), file) == {PARALLEL_CALLS_UNSUPPORTED}


def test_split_calls_are_followed_by_their_own_results():
    split = split_parallel_calls([*HISTORY, Message("assistant", "Paris.")])
    assert [(message.role, [call.id for call in message.calls], message.answers) for message in split] == [
        ("user", [], ""),
        ("assistant", ["c0"], ""),
        ("tool", [], "c0"),
        ("assistant", ["c1"], ""),
        ("tool", [], "c1"),
        ("assistant", [], ""),
    ]


def refuse(field: str, status: int):
    """A script that refuses a field of the request, or the role of instructions, in the words of such servers."""

    def script(request: Request) -> Reply:
        has_role = field == "system" and any(message["role"] == "system" for message in request.body["messages"])
        if field in request.body or has_role:
            words = "System role not supported" if has_role else f"unexpected keyword argument '{field}'"
            return Fails(status, words)
        return Says("Paris.")

    return script


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("field", ["stream_options", "max_tokens", "system"])
def test_a_field_that_a_server_refuses_by_its_name_is_left_out_from_then_on(tmp_path: Path, field: str, status: int):
    messages = [Message("system", "Be brief."), *ASKED]
    texts: list[str] = []
    with ModelServer(refuse(field, status)) as server:
        changes: dict[str, Any] = {"reply_limit": 300}
        assert build_chat(server, tmp_path, **changes).ask(messages, on_text=texts.append).text == "Paris."
        before = len(server.requests)
        assert build_chat(server, tmp_path, **changes).ask(messages, on_text=texts.append).text == "Paris."
        assert len(server.requests) == before + 1
    sent = server.requests[-1].body
    # The limit of the reply stays, and so do the instructions.
    assert 300 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert "Be brief." in server.requests[-1].prompt


def test_a_refused_field_is_looked_for_once(tmp_path: Path):
    with ModelServer(lambda _: Fails(400, "max_tokens, or something else")) as server:
        with pytest.raises(ChatError, match="something else"):
            build_chat(server, tmp_path).ask(ASKED)
        assert len(server.requests) == 2
        assert not build_chat(server, tmp_path).known_limitations
