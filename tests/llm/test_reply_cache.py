"""Replies that came are not asked for again, not even by another process; those that never came are."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm.errors import ChatBadRequest, ChatEmptyReply
from llm.reply_cache import ReplyCache
from llm.types import Message
from tests.servers.model import Fails, ModelServer, Request, Says


def asked(text: str) -> list[Message]:
    return [Message("user", text)]


def echo(request: Request) -> Says:
    return Says(f"reply {request.place}", calls=[("read", {"title": request.prompt})], usage=(7, 3))


def test_work_that_begins_anew_asks_only_for_what_it_has_not_heard(tmp_path):
    file = tmp_path / "a" / "replies.sqlite"
    with ModelServer(echo) as server:
        with ReplyCache(file) as kept:
            chat = kept.caching_client(server.chat(), "question 1")
            first = [chat.ask(asked(text)) for text in ("a", "b", "a")]
            assert [reply.text for reply in first] == ["reply 0", "reply 1", "reply 2"]
        with ReplyCache(file) as kept:
            chat = kept.caching_client(server.chat(), "question 1")
            again = [chat.ask(asked(text)) for text in ("a", "b", "a")]
            assert len(server.requests) == 3
            assert [(r.text, r.calls, r.stopped) for r in again] == [(r.text, r.calls, r.stopped) for r in first]
            assert (chat.total_usage.input_tokens, chat.total_usage.output_tokens) == (21, 9)
            assert (kept.total_usage.calls, kept.total_usage.input_tokens, kept.total_usage.output_tokens) == (3, 21, 9)
            assert chat.ask(asked("a")).text == "reply 3"
            # Another question's replies are its own.
            assert kept.caching_client(server.chat(), "question 2").ask(asked("b")).text == "reply 4"
            assert kept.total_usage.calls == len(server.requests) == 5


def test_a_metered_chat_goes_through_the_same_record(tmp_path):
    words: list[str] = []
    with ModelServer(echo) as server:
        for _ in range(2):
            with ReplyCache(tmp_path / "r.sqlite") as kept:
                chat = kept.caching_client(server.chat(), "s")
                assert chat.with_new_meter().ask(asked("a")).text == "reply 0"
                assert chat.with_new_meter().ask(asked("a"), on_text=words.append).text == "reply 1"
        assert len(server.requests) == 2
    assert "".join(words) == "reply 1" * 2


@pytest.mark.parametrize(("reply", "error"), [(Says(""), ChatEmptyReply), (Fails(400, "no"), ChatBadRequest)])
def test_what_failed_is_not_kept(tmp_path, reply, error):
    with ModelServer([reply, Says("now")]) as server, ReplyCache(tmp_path / "r.sqlite") as kept:
        with pytest.raises(error):
            kept.caching_client(server.chat(), "s").ask(asked("a"))
        assert kept.caching_client(server.chat(), "s").ask(asked("a")).text == "now"


def test_many_threads_keep_their_replies_apart(tmp_path):
    barrier = threading.Barrier(8)
    with ModelServer(lambda request: Says(request.prompt)) as server, ReplyCache(tmp_path / "r.sqlite") as kept:

        def ask(number: int) -> str:
            chat = kept.caching_client(server.chat(), f"question {number}")
            barrier.wait()
            return "".join(chat.ask(asked(f"{number}.{turn}")).text for turn in range(5))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
    assert found == ["".join(f"{number}.{turn}" for turn in range(5)) for number in range(8)]
    with sqlite3.connect(tmp_path / "r.sqlite") as store:
        assert store.execute("SELECT count(*) FROM reply").fetchone() == (40,)
    store.close()
