"""Scripts of a ModelServer that allow so many requests a second, in the manners of several providers."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.servers.model import Fails, Reply, Request, Says

Clock = Callable[[], float]


class TokenBucket:
    """Allows `rate` requests a second and up to `size` at once."""

    def __init__(self, rate: float, size: float, clock: Clock = time.monotonic) -> None:
        self.rate, self.size, self.clock = rate, size, clock
        self.tokens, self.at = size, clock()

    def take(self) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        now = self.clock()
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0


class SlidingWindow:
    """Allows `count` requests in any `seconds`."""

    def __init__(self, count: int, seconds: float, clock: Clock = time.monotonic) -> None:
        self.count, self.seconds, self.clock = count, seconds, clock
        self.starts: deque[float] = deque()

    def take(self) -> float:
        """Take a place in the window and return 0, or return the seconds until there is one."""
        now = self.clock()
        while self.starts and self.starts[0] <= now - self.seconds:
            self.starts.popleft()
        if len(self.starts) >= self.count:
            return self.starts[0] + self.seconds - now
        self.starts.append(now)
        return 0.0


class FixedWindow:
    """Allows `count` requests in each period of `seconds`."""

    def __init__(self, count: int, seconds: float, clock: Clock = time.monotonic) -> None:
        self.count, self.seconds, self.clock = count, seconds, clock
        self.period, self.used = -1, 0

    def take(self) -> float:
        """Take a place in the period and return 0, or return the seconds until the next period."""
        now = self.clock()
        if int(now / self.seconds) != self.period:
            self.period, self.used = int(now / self.seconds), 0
        if self.used >= self.count:
            return (self.period + 1) * self.seconds - now
        self.used += 1
        return 0.0


Allowance = TokenBucket | SlidingWindow | FixedWindow


@dataclass
class RateLimitedScript:
    """Replies within the allowance, and otherwise refuses; `refuse` writes the refusal from the seconds to wait."""

    allowance: Allowance
    refuse: Callable[[float], Fails]
    reply: Callable[[Request], Reply] = lambda _: Says("ok")
    headers: Callable[[Allowance], Mapping[str, str]] | None = None
    accepted_at: list[float] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply:
        with self.lock:
            wait = self.allowance.take()
            (self.refused_at if wait else self.accepted_at).append(time.monotonic())
        return self.refuse(wait) if wait else self.reply(request)


def refuse_in_text(wait: float) -> Fails:
    """The manner of OpenAI's messages."""
    return Fails(429, f"Rate limit reached for requests. Please try again in {wait:.3f}s.", code="rate_limit_exceeded")


def refuse_with_whole_seconds(wait: float) -> Fails:
    """The manner of most servers: a Retry-After in whole seconds."""
    return Fails(429, "Too many requests", {"Retry-After": str(int(wait) + 1)})


def refuse_with_milliseconds(wait: float) -> Fails:
    """The manner of Azure."""
    return Fails(429, "Too many requests", {"retry-after-ms": str(int(wait * 1000) + 1)})


def refuse_silently(_wait: float) -> Fails:
    """Servers that name no time."""
    return Fails(429, "Too many requests")
