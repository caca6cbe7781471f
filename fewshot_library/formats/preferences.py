"""Preference pairs as TRL takes them: a trace that was fixed, chosen over the failed one that it was forked from."""

from itertools import takewhile
from typing import Any

from db.record import TraceRecord
from fewshot_library.formats.chat import KEPT, chat_of, unclear
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format
from fewshot_library.formats.lines import LeftOut, as_lines
from fewshot_library.formats.openai import plain

BETTER = ("approved", "submitted")
WORSE = ("failed", "rejected", "submitted")


def _tell(record: TraceRecord, export: Export) -> tuple[dict[str, Any], list[str]]:
    parent = _parent(record, export)
    good, bad = ([plain(each, arguments_as_text=False) for each in chat_of(side)] for side in (record, parent))
    # What both have in common was no choice: it is the prompt. An assistant's turn goes with what came back of it.
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(good, bad, strict=False))))
    while shared > 1 and good[shared - 1].get("tool_calls"):
        shared -= 1
    if len(good) == shared or len(bad) == shared:
        raise LeftOut(f"it says nothing else than its parent, trace {parent.trace.id}, or goes no further")
    pair = {
        "prompt": good[:shared],
        "chosen": good[shared:],
        "rejected": bad[shared:],
        "tools": export.definitions(record),
    }
    return pair, [*dropped(record, {*KEPT, "trace.parent_id"}), *unclear(record)]


def _parent(record: TraceRecord, export: Export) -> TraceRecord:
    if record.trace.parent_id is None:
        raise LeftOut("it was not forked from another trace")
    if record.trace.status not in BETTER:
        raise LeftOut(f"it is {record.trace.status} itself")
    parent = export.find(record.trace.parent_id)
    if parent is None:
        raise LeftOut(f"its parent, trace {record.trace.parent_id}, is not in the store")
    if parent.trace.status not in WORSE or parent.trace.status == record.trace.status:
        raise LeftOut(f"its parent, trace {parent.trace.id}, is {parent.trace.status} and no failed one")
    return parent


PREFERENCES = Format("trl", "preference pairs for TRL: a fixed trace over its failed parent", write=as_lines(_tell))
