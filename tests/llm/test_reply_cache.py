"""Cached replies are not requested again, even by another process."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from llm.client import build_chat_client
from llm.errors import ChatBadRequest, ChatEmptyReply
from llm.reply_cache import ReplyCache
from llm.types import Message, ModelProfile
from tests.servers.model import Fails, ModelServer, Request, Says
from tools.registry import BUILT_IN_TOOLS


def asked(text: str) -> list[Message]:
    return [Message("user", text)]


def echo(request: Request) -> Says:
    return Says(f"reply {request.place}", calls=[("read", {"title": request.prompt})], usage=(7, 3))


def test_a_resumed_process_requests_only_the_replies_that_are_not_cached(tmp_path):
    file = tmp_path / "a" / "replies.sqlite"
    with ModelServer(echo) as server:
        with ReplyCache(file) as cache:
            chat = cache.caching_client(server.chat(), "question 1")
            first = [chat.ask(asked(text)) for text in ("a", "b", "a")]
            assert [reply.text for reply in first] == ["reply 0", "reply 1", "reply 2"]
        with ReplyCache(file) as cache:
            chat = cache.caching_client(server.chat(), "question 1")
            again = [chat.ask(asked(text)) for text in ("a", "b", "a")]
            assert len(server.requests) == 3
            assert [(r.text, r.calls, r.stopped) for r in again] == [(r.text, r.calls, r.stopped) for r in first]
            assert (chat.total_usage.input_tokens, chat.total_usage.output_tokens) == (21, 9)
            assert (cache.total_usage.calls, cache.total_usage.input_tokens, cache.total_usage.output_tokens) == (
                3,
                21,
                9,
            )
            assert chat.ask(asked("a")).text == "reply 3"
            # Another question's replies are its own.
            assert cache.caching_client(server.chat(), "question 2").ask(asked("b")).text == "reply 4"
            assert cache.total_usage.calls == len(server.requests) == 5


def test_clients_with_meters_of_their_own_share_the_cache(tmp_path):
    words: list[str] = []
    with ModelServer(echo) as server:
        for _ in range(2):
            with ReplyCache(tmp_path / "r.sqlite") as cache:
                chat = cache.caching_client(server.chat(), "s")
                assert chat.with_new_meter().ask(asked("a")).text == "reply 0"
                assert chat.with_new_meter().ask(asked("a"), on_text=words.append).text == "reply 1"
        assert len(server.requests) == 2
    assert "".join(words) == "reply 1" * 2


@pytest.mark.parametrize(("reply", "error"), [(Says(""), ChatEmptyReply), (Fails(400, "no"), ChatBadRequest)])
def test_failed_and_empty_replies_are_not_cached(tmp_path, reply, error):
    with ModelServer([reply, Says("now")]) as server, ReplyCache(tmp_path / "r.sqlite") as cache:
        with pytest.raises(error):
            cache.caching_client(server.chat(), "s").ask(asked("a"))
        assert cache.caching_client(server.chat(), "s").ask(asked("a")).text == "now"


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "another"},
        {"temperature": 1.0},
        {"base_url": "/other/v1"},
        {"reasoning_effort": "low"},
        {"extra_body": {"top_k": 1}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_change_of_the_profile_never_replays_the_replies_of_another(tmp_path, changed):
    with ModelServer(lambda request: Says(f"I am {request.body['model']}, reply {request.place}")) as server:
        before = ModelProfile("one", server.url)
        # The server answers at any path that ends with /chat/completions.
        changes = {**changed, **({"base_url": server.url.replace("/v1", "/other/v1")} if "base_url" in changed else {})}
        after = replace(before, **changes)
        replies = []
        for profile in (before, after, before, after):
            with ReplyCache(tmp_path / "r.sqlite") as cache:
                replies.append(cache.caching_client(build_chat_client(profile), "s").ask(asked("a")).text)
        assert len(server.requests) == 2
    assert replies == ["I am one, reply 0", f"I am {after.model}, reply 1"] * 2


def test_a_change_of_the_temperature_of_a_request_is_another_request(tmp_path):
    with ModelServer([Says("cold"), Says("warm")]) as server:
        for _ in range(2):
            with ReplyCache(tmp_path / "r.sqlite") as cache:
                chat = cache.caching_client(server.chat(), "s")
                assert [chat.ask(asked("a"), temperature=t).text for t in (None, 0.7)] == ["cold", "warm"]


def test_a_change_of_stop_sequences_or_tools_is_another_request(tmp_path):
    with ModelServer(echo) as server, ReplyCache(tmp_path / "r.sqlite") as cache:
        for options in (
            {},
            {"stop": ["\n"]},
            {"tools": [BUILT_IN_TOOLS["read"]]},
            {"tools": [BUILT_IN_TOOLS["getLabel"]]},
        ):
            cache.caching_client(server.chat(), "s").ask(asked("a"), **options)
        assert len(server.requests) == 4


def test_threads_that_share_a_cache_get_their_own_replies(tmp_path):
    barrier = threading.Barrier(8)
    with ModelServer(lambda request: Says(request.prompt)) as server, ReplyCache(tmp_path / "r.sqlite") as cache:

        def ask(number: int) -> str:
            chat = cache.caching_client(server.chat(), f"question {number}")
            barrier.wait()
            return "".join(chat.ask(asked(f"{number}.{turn}")).text for turn in range(5))

        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(ask, range(8)))
    assert replies == ["".join(f"{number}.{turn}" for turn in range(5)) for number in range(8)]
    with sqlite3.connect(tmp_path / "r.sqlite") as store:
        assert store.execute("SELECT count(*) FROM reply").fetchone() == (40,)
    store.close()
