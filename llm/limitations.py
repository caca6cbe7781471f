"""What servers refuse: learnt from a request that was accepted only without it, and remembered for the profile.

limitations = ServerLimitations(profile, home / LIMITATIONS_FILE_NAME)
AdaptingModel(model, limitations).reply(request, 60.0)      # asks without what is known to be refused
"""

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from showhow.guard.files import partial_path
from showhow.llm.errors import ChatError
from showhow.llm.types import ChatModel, ChatReply, ChatRequest, Message, ModelProfile

LIMITATIONS_FILE_NAME = "model_limitations.json"
_LOCK_SECONDS = 5.0
SCHEMA_UNSUPPORTED = "refuses schemas"
JSON_OBJECT_UNSUPPORTED = "refuses replies in JSON"
TEMPERATURE_UNSUPPORTED = "refuses other temperatures"
LOGPROBS_UNSUPPORTED = "gives no log-probabilities"
"""Also learnt from a reply that had none."""
TOOLS_UNSUPPORTED = "refuses tools"
STOP_UNSUPPORTED = "refuses stop sequences"
PARALLEL_CALLS_UNSUPPORTED = "refuses several calls in one message"
EMPTY_TEXT_UNSUPPORTED = "refuses an empty text beside calls"
_OPTIONAL_FIELDS = {
    **{name: rf"\b{name}\b" for name in ("stream_options", "max_tokens")},
    "system": r"(?i)system role|role:? \W?system",
}
"""What a request can do without, and how a refusal names it."""
_log = logging.getLogger(__name__)
ReplyT = TypeVar("ReplyT")


class ServerLimitations(Set[str]):
    """The known limitations of a profile's server; thread-safe.

    With a file they outlast the process, as long as model and address of the profile stay the same. A file that cannot
    be read or written is no failure: what it would say is learnt again.
    """

    def __init__(self, profile: ModelProfile, file: Path | None = None) -> None:
        self._profile = profile
        self._file = file
        self._lock = Lock()
        self._known = frozenset(self._read_entries().get(profile.name, {}).get("limitations", ()))

    def __contains__(self, limitation: object) -> bool:
        return limitation in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    @classmethod
    def _from_iterable(cls, iterable: Iterable[Any]) -> Set[Any]:
        return frozenset(iterable)

    def learn(self, limitations: Iterable[str]) -> None:
        """Add limitations, and store them."""
        new = {*limitations} - self._known
        if not new:
            return
        with self._lock:
            self._known |= new
        for limitation in sorted(new):
            _log.info("%s %s, and is asked accordingly from now on", self._profile.model, limitation)
        self._store(new)

    def forget(self) -> None:
        """Forget all limitations, also in the file."""
        with self._lock:
            self._known = frozenset()
        self._store(None)

    def _store(self, new: set[str] | None) -> None:
        """Add to the stored limitations; None removes them."""
        if self._file is None:
            return
        with suppress(OSError, Timeout):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._file.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                entries = self._read_entries()
                stored = entries.pop(self._profile.name, {}).get("limitations", [])
                if new is not None:
                    entries[self._profile.name] = {**self._identity, "limitations": sorted({*stored, *new})}
                partial = partial_path(self._file)
                try:
                    partial.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
                    partial.replace(self._file)
                finally:
                    partial.unlink(missing_ok=True)

    @property
    def _identity(self) -> dict[str, Any]:
        return {"model": self._profile.model, "base_url": self._profile.parameters["base_url"]}

    def _read_entries(self) -> dict[str, Any]:
        """What is stored of all profiles, without what was learnt about another model or address of this one."""
        try:
            document = json.loads(self._file.read_text(encoding="utf-8")) if self._file else {}
        except (OSError, ValueError):
            return {}
        entries = document if isinstance(document, dict) else {}
        valid = {name: entry for name, entry in entries.items() if _is_entry(entry)}
        own = valid.get(self._profile.name)
        if own is not None and {name: own.get(name) for name in self._identity} != self._identity:
            del valid[self._profile.name]
        return valid


def _is_entry(entry: Any) -> bool:
    limitations = entry.get("limitations") if isinstance(entry, Mapping) else None
    return isinstance(limitations, list) and all(isinstance(limitation, str) for limitation in limitations)


def ask_within(
    limitations: ServerLimitations, options: Collection[Sequence[str]], ask: Callable[[Collection[str]], ReplyT]
) -> ReplyT:
    """The reply of `ask`, which is called with the limitations to which the request shall keep.

    Each option has its limitations in the order in which it gives way to them. Servers do not tell reliably what they
    refuse, so the first request keeps to those that are known, and each further one to others. Those to which the
    accepted request kept are learnt. A server that fails with the same sentence whatever it is asked is asked no more.
    """
    steps = [
        [option[:count] for count in range(_count_known(option, limitations), len(option) + 1)] for option in options
    ]
    # Of those that leave out as much, the first ones leave out the first options.
    forms = [[name for part in parts for name in part] for parts in reversed([*product(*steps)])]
    forms.sort(key=len)
    first: ChatError | None = None
    bare: list[ReplyT] = []
    for form in forms[:-1]:
        try:
            reply = ask(form)
        except ChatError as error:
            if not error.is_refusal:
                raise
            if first is None and error.retryable:
                bare += _ask_barely(forms[-1], error, ask)
            first = first or error
        else:
            limitations.learn(form)
            return reply
    reply = bare[0] if bare else ask(forms[-1])
    limitations.learn(forms[-1])
    return reply


def _count_known(option: Sequence[str], limitations: ServerLimitations) -> int:
    return max((place for place, name in enumerate(option, 1) if name in limitations), default=0)


def _ask_barely(form: Collection[str], failure: ChatError, ask: Callable[[Collection[str]], ReplyT]) -> list[ReplyT]:
    """The reply to the request without any option, if there is one; the error if it is this failure again."""
    try:
        return [ask(form)]
    except ChatError as error:
        if not error.is_refusal or error.counted_as == failure.counted_as:
            raise
    return []


class AdaptingModel:
    """A model whose requests have the form of messages that its server takes. Thread-safe."""

    def __init__(self, model: ChatModel, limitations: ServerLimitations) -> None:
        self._model = model
        self._limitations = limitations

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Send the request, in other forms if the server refuses it; ChatError if there is no reply in time."""
        deadline = time.monotonic() + seconds
        with_calls = [message for message in request.messages if message.calls]
        options = [[PARALLEL_CALLS_UNSUPPORTED]] if any(len(message.calls) > 1 for message in with_calls) else []
        options += [[EMPTY_TEXT_UNSUPPORTED]] if any(not message.text for message in with_calls) else []

        def ask(left_out: Collection[str]) -> ChatReply:
            messages = request.messages
            if PARALLEL_CALLS_UNSUPPORTED in left_out:
                messages = split_parallel_calls(messages)
            adapted = replace(request, messages=messages, leaves_out_empty_text=EMPTY_TEXT_UNSUPPORTED in left_out)
            adapted = replace(adapted, refused_fields=frozenset(refused))
            return self._model.reply(adapted, max(0.0, deadline - time.monotonic()))

        # Such a field is named in the refusal, so that the others need not be tried.
        refused = {name for name in _OPTIONAL_FIELDS if _refusal_of(name) in self._limitations}
        while True:
            try:
                reply = ask_within(self._limitations, options, ask)
            except ChatError as error:
                text = str(error) if error.is_refusal else ""
                named = {name for name, words in _OPTIONAL_FIELDS.items() if re.search(words, text)} - refused
                if not named:
                    raise
                refused |= named
            else:
                self._limitations.learn(map(_refusal_of, refused))
                return reply


def _refusal_of(field: str) -> str:
    return f"refuses {field}"


def split_parallel_calls(messages: Sequence[Message]) -> list[Message]:
    """The messages with one call each, every one followed by its result."""
    result_of = {message.answers: message for message in messages if message.answers}
    split: list[Message] = []
    moved: set[str] = set()
    for message in messages:
        if len(message.calls) > 1:
            for number, call in enumerate(message.calls):
                results = [result_of[call.id]] if call.id in result_of else []
                split += [replace(message, text="" if number else message.text, calls=(call,)), *results]
                moved.add(call.id)
        elif message.answers not in moved:
            split.append(message)
    return split
