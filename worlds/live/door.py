"""The one door through which live sources are asked: recorded answers first, then the host, politely and bounded."""

import json
import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape
from urllib.parse import quote, quote_plus, urljoin, urlsplit

from worlds.live.access import Access, Policy
from worlds.live.answers import Answers
from worlds.live.gate import LONGEST_REST, gate_of
from worlds.live.request import Answer, BadStatus, Busy, NoAnswer, Request, host_of, named
from worlds.live.retry_after import retry_after
from worlds.live.turns import Turns
from worlds.live.wire import Broken, Late, exchange
from worlds.source import SourceTimeout, SourceUnavailable

_MOST_REDIRECTS = 5
_FIRST_WAIT = 0.5
_KEPT_OF_FAILURE = 10_000
_SHORTEST_KEY = 8
_OF_ADDRESSES = "%/:?#[]@!$&'()*+,;=~"
_ADVICE = {
    401: "; it wants a key: check the headers in world.toml and the variables that they name",
    403: "; it lets this program not in: check the contact, and the headers in world.toml",
    404: "; check its address in world.toml",
    410: "; check its address in world.toml",
    413: "; ask for less",
    414: "; ask for less",
}
_ENDS: ContextVar[float] = ContextVar("ends", default=math.inf)
"""When the call that sends several requests has to be over."""


@dataclass(slots=True)
class _Call:
    """How long one call may still take, and how long it stood before closed gates."""

    ends: float
    waited: float = 0.0


class Door:
    """Asks the hosts of one source under its policy; safe to share between threads.

    `send` gives a whole, checked answer (recorded, or new and then recorded) or raises a SourceError in one sentence.
    """

    def __init__(self, policy: Policy, answers: Answers, access: Access) -> None:
        self._policy = policy
        self._answers = answers
        self._access = access
        self._turns = Turns()
        words = {word for _, value in policy.headers for word in (value, *value.split()) if len(word) >= _SHORTEST_KEY}
        self._secrets = sorted({form for word in words for form in _spellings(word)}, key=len, reverse=True)

    def send(self, request: Request) -> Answer:
        """The answer within Policy.seconds; BadStatus and NoAnswer tell apart what a host may have said instead."""
        key = request.key
        if (recorded := self._recorded(key)) is not None:
            return _good(recorded)
        if not self._access.live:
            raise SourceUnavailable(self._not_recorded(request))
        own = {"User-Agent": self._access.user_agent(), "Accept-Encoding": "gzip", **dict(self._policy.headers)}
        call = _Call(min(time.monotonic() + self._policy.seconds, _ENDS.get()))
        try:
            with self._turns.taken(key, call.ends):
                if (recorded := self._recorded(key)) is not None:
                    return recorded
                answer = self._asked(request, {**request.headers, **own}, call)
                self._answers.record(key, answer)
                return _good(answer)
        except Late as late:
            raise SourceTimeout(self._too_late(request, call)) from late

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """Everything that this thread sends inside counts as one call, which as a whole has Policy.seconds."""
        ends = min(time.monotonic() + self._policy.seconds, _ENDS.get())
        token = _ENDS.set(ends)
        try:
            yield
        finally:
            _ENDS.reset(token)

    def _recorded(self, key: str) -> Answer | None:
        """The recorded answer; while hosts may be asked, only a good one that is not too old."""
        found = self._answers.latest(key, self._access.as_of)
        fresh = found is not None and found.good and datetime.now(UTC) - found.moment < self._policy.keep
        return found if fresh or not self._access.live else None

    def _not_recorded(self, request: Request) -> str:
        host = host_of(request.url)
        if self._access.as_of is not None:
            then = self._access.as_of.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            return f"{host} had not been asked this by {then}, so nothing is known of what it would have answered."
        return f"{host} has not been asked this before, and Showhow is offline; ask it once while connected."

    def _asked(self, request: Request, headers: dict[str, str], call: _Call) -> Answer:
        """Ask until there is an answer, no attempt is left, or the time is over."""
        trouble = ""
        for attempt in range(self._policy.attempts):
            wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 (spreads callers, guards nothing)
            try:
                answer = self._followed(request, headers, call)
                if answer.status not in request.again:
                    self._check(request, answer)
                    return answer
                trouble = f"answered {named(answer.status)}"
                wait = self._told_to_wait(answer, wait)
            except Broken as broken:
                trouble = f"could not be reached ({self._hushed(str(broken))})"
            except Busy as busy:
                trouble = f"had no time ({busy})"
            if attempt + 1 == self._policy.attempts or time.monotonic() + wait > call.ends:
                break
            time.sleep(wait)
        times = f", {attempt + 1} times in a row" if attempt else ""
        raise SourceUnavailable(f"{host_of(request.url)} {trouble}{times}; try again {_later(wait)}.")

    def _told_to_wait(self, answer: Answer, wait: float) -> float:
        """How long to wait after a status of failure; where the host says so, or is asked too often, all wait."""
        told = retry_after(answer.headers.get("retry-after"))
        if told is None and answer.status != 429:
            return wait
        wait = wait if told is None else min(told, LONGEST_REST)
        gate_of(host_of(answer.url)).rest(wait)
        return wait

    def _followed(self, request: Request, headers: dict[str, str], call: _Call) -> Answer:
        """The answer at the end of the redirects, each to a host of the policy."""
        for _ in range(_MOST_REDIRECTS):
            host = self._permitted(request.url)
            with gate_of(host).entered(self._policy, call.ends) as waited:
                call.waited += waited
                answer = self._without_keys(exchange(request, headers, call.ends, self._policy.most_bytes))
            place = answer.headers.get("location")
            if answer.status not in {301, 302, 303, 307, 308} or place is None:
                return answer
            request = replace(request, url=self._onward(request.url, place))
        raise NoAnswer(f"{host_of(request.url)} redirects more than {_MOST_REDIRECTS} times; check its address.")

    def _onward(self, url: str, place: str) -> str:
        try:
            # Bytes beyond ASCII travel as browsers send them.
            onward = urljoin(url, quote(place.encode("latin-1"), safe=_OF_ADDRESSES))
            host_of(onward)
        except ValueError as wrong:
            raise NoAnswer(
                f"{host_of(url)} redirects to what is no address; check its address in world.toml."
            ) from wrong
        if url.startswith("https:") and not onward.startswith("https:"):
            raise SourceUnavailable(
                f"{host_of(url)} leads from https to an open connection, on which anybody could read along; "
                "check its address in world.toml."
            )
        return onward

    def _without_keys(self, answer: Answer) -> Answer:
        """A host that repeats our keys in what it says must not bring them into the record or a sentence."""
        body = answer.body
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"...")
        # Where it leads on has to stay as it is; it is followed, and neither recorded nor told.
        told = {name: value if name == "location" else self._hushed(value) for name, value in answer.headers.items()}
        return replace(answer, url=self._hushed(answer.url), headers=told, body=body)

    def _hushed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text

    def _too_late(self, request: Request, call: _Call) -> str:
        waited = f" ({call.waited:.0f} s of them spent waiting for one of its {self._policy.at_once} places)"
        return (
            f"{host_of(request.url)} did not answer within {self._policy.seconds:g} s"
            f"{waited if call.waited >= 1 else ''}; ask for less, or try again in a minute."
        )

    def _permitted(self, url: str) -> str:
        parts = urlsplit(url)
        host = host_of(url)
        if parts.scheme not in {"http", "https"} or parts.username is not None or host not in self._policy.hosts:
            raise SourceUnavailable(
                f"Nothing is fetched from {host or 'that address'}: this world only asks "
                f"{', '.join(sorted(self._policy.hosts))}."
            )
        return host

    def _check(self, request: Request, answer: Answer) -> None:
        """Raise for what is neither an answer to the request nor a verdict on it."""
        if answer.status in request.verdicts:
            return
        if _good(answer).content_type not in request.types:
            raise NoAnswer(
                f"{host_of(answer.url)} answered with {answer.content_type or 'something of no type'} instead of "
                f"{request.types[0]}; check the address in world.toml."
            )
        request.check(answer)


def _good(answer: Answer) -> Answer:
    """The answer, or BadStatus where it tells of a failure."""
    if answer.good:
        return answer
    advice = _ADVICE.get(answer.status, "")
    raise BadStatus(
        f"{host_of(answer.url)} answered {named(answer.status)}{advice}.",
        answer.status,
        answer.body[:_KEPT_OF_FAILURE],
    )


def _spellings(word: str) -> set[str]:
    """A word as answers may hold it: as it is, and escaped as JSON (PHP's too), mark-up and addresses are."""
    in_json = json.dumps(word)[1:-1]
    return {
        word,
        in_json,
        in_json.replace("/", "\\/"),
        escape(word),
        quote(word),
        quote(word, safe=""),
        quote_plus(word),
    }


def _later(seconds: float) -> str:
    return f"after {(datetime.now(UTC) + timedelta(seconds=max(seconds, 5.0))).strftime('%H:%M:%S UTC')}"
