"""Words as they come from a model: up to the first stop sequence, and no longer than anybody waits."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tools.chat_errors import ChatError, ChatTimeout

Found = TypeVar("Found")


def before_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the stop sequence that is complete first; servers need not know them."""
    found = [(place + len(one), place) for one in stop if one and (place := text.find(one)) >= 0]
    return text[: min(found)[1]] if found else text


class Spoken:
    """Hands over words as soon as it is certain that they do not begin a stop sequence."""

    def __init__(self, on_text: Callable[[str], None], stop: Sequence[str]) -> None:
        self._on_text = on_text
        self._stop = [one for one in stop if one]
        self._text = ""
        self._given = 0

    @property
    def any(self) -> bool:
        """Whether any word was handed over."""
        return self._given > 0

    def more(self, piece: str) -> None:
        """Take the next piece."""
        self._text += piece
        whole = before_stop(self._text, self._stop)
        held = 0 if len(whole) < len(self._text) else self._may_begin_a_stop()
        self._give(len(whole) - held)

    def end(self) -> None:
        """Hand over what was held back."""
        self._give(len(before_stop(self._text, self._stop)))

    def _may_begin_a_stop(self) -> int:
        longest = max(map(len, self._stop), default=1) - 1
        lengths = range(min(longest, len(self._text)), 0, -1)
        return next((n for n in lengths if any(one.startswith(self._text[-n:]) for one in self._stop)), 0)

    def _give(self, end: int) -> None:
        if end > self._given:
            given, self._given = self._given, end
            self._on_text(self._text[given:end])


class Errand(Generic[Found]):
    """Work of a provider's package in a thread of its own, so that nobody waits for it longer than the time given.

    `run` is given the errand: it hands words over by `say` and looks at `abandoned` between pieces.
    """

    def __init__(self, run: Callable[["Errand[Found]"], Found | ChatError]) -> None:
        self._run = run
        self._news: queue.SimpleQueue[str | tuple[Found | ChatError | None]] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._abandoned.is_set()

    def say(self, words: str) -> None:
        """Hand words over to who waits."""
        self._news.put(words)

    def result(self, seconds: float, on_words: Callable[[str], None], late: str) -> Found:
        """What `run` found; its ChatError, or ChatTimeout(late) when the seconds are over."""
        threading.Thread(target=self._work, daemon=True, name="language model").start()
        ends = time.monotonic() + seconds
        try:
            while True:
                news = self._next(ends, late)
                if not isinstance(news, str):
                    break
                on_words(news)
        finally:
            self._abandoned.set()
        (found,) = news
        if found is None:
            raise ChatError("The request to the language model failed by a fault of the program; see its log.")
        if isinstance(found, ChatError):
            raise found
        return found

    def _next(self, ends: float, late: str) -> str | tuple[Found | ChatError | None]:
        try:
            return self._news.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            pass
        raise ChatTimeout(late)

    def _work(self) -> None:
        found: Found | ChatError | None = None
        try:
            found = self._run(self)
        finally:
            self._news.put((found,))
