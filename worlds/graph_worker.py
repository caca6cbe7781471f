"""The process that answers queries to one graph: `python -m worlds.graph_worker FOLDER MEMORY_BYTES`.

Writes {} when it has opened the graph; then reads one JSON request a line and writes one JSON reply a line:
    {"sparql", "rows", "bytes", "seconds"}  ->  {"columns", "rows", "truncated"} or {"boolean"}
    {"describe": [iri, ...]}                ->  {"entities": [{"iri", "labels", "aliases", ...}, ...]}
    {"relate": iri, "relations": [iri ...]} ->  {"outgoing": [iri ...], "incoming": [iri ...]}
or {"unreadable": where and why}, {"refused": why}, {"failed": why}.
Its parent ends it when it overruns; it ends itself when its parent is gone.
"""

import json
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyoxigraph as ox

from worlds import terms
from worlds.no_network import leave_network

_GRACE = 2.0
"""Seconds after its limit at which a query ends its process even if no parent is left to do it."""
_MOST_LABELS = 2000
"""Names of one entity that are looked at; some items have labels in hundreds of languages."""


class _Refused(Exception):
    """The query is no SELECT or ASK."""


def _cell(term: Any, store: ox.Store) -> dict[str, str] | None:
    if isinstance(term, ox.NamedNode):
        known = terms.is_entity(term.value) or _has(store, term, ox.NamedNode(terms.RDFS_LABEL), None)
        return {"kind": "entity" if known else "iri", "value": terms.id_of(term.value)}
    if isinstance(term, ox.Literal):
        cell = {"kind": "literal", "value": term.value, "datatype": term.datatype.value}
        return cell | {"language": term.language} if term.language else cell
    if isinstance(term, ox.BlankNode):
        return {"kind": "blank", "value": term.value}
    return None if term is None else {"kind": "literal", "value": str(term)}


def _has(store: ox.Store, subject: Any, predicate: Any, value: Any) -> bool:
    return next(store.quads_for_pattern(subject, predicate, value), None) is not None


def _query(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    results = store.query(request["sparql"], prefixes=terms.PREFIXES)
    if isinstance(results, ox.QueryBoolean):
        return {"boolean": bool(results)}
    if not isinstance(results, ox.QuerySolutions):
        raise _Refused("Only SELECT and ASK are answered; CONSTRUCT and DESCRIBE are not; SELECT the values instead.")
    columns = [variable.value for variable in results.variables]
    rows: list[list[dict[str, str] | None]] = []
    size, truncated = 0, False
    for solution in results:
        row = [_cell(solution[column], store) for column in columns]
        size += sum(len(cell["value"]) + 60 for cell in row if cell)
        if len(rows) == request["rows"] or size > request["bytes"]:
            truncated = True
            break
        rows.append(row)
    return {"columns": columns, "rows": rows, "truncated": truncated}


def _describe(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    nodes = [_node(iri) for iri in request["describe"]]
    return {"entities": [_describe_one(store, node) for node in nodes if node is not None]}


def _node(iri: str) -> ox.NamedNode | None:
    """The node of an IRI that somebody typed; None for one that no graph can hold, such as x:%."""
    try:
        return ox.NamedNode(iri)
    except ValueError:
        return None


def _describe_one(store: ox.Store, node: ox.NamedNode) -> dict[str, Any]:
    def literals(predicate: str) -> list[list[str]]:
        return [
            [value.value, value.language or ""]
            for value in _objects(store, node, predicate)
            if isinstance(value, ox.Literal)
        ]

    about = store.quads_for_pattern(None, ox.NamedNode(terms.SCHEMA_ABOUT), node)
    direct = ox.NamedNode(terms.DIRECT + terms.id_of(node.value)) if terms.is_entity(node.value) else node
    return {
        "iri": node.value,
        "labels": literals(terms.RDFS_LABEL),
        "aliases": literals(terms.SKOS_ALT_LABEL),
        "descriptions": literals(terms.SCHEMA_DESCRIPTION),
        "pages": [
            page.subject.value
            for page, _ in zip(about, range(_MOST_LABELS), strict=False)
            if isinstance(page.subject, ox.NamedNode)
        ],
        "known": _has(store, node, None, None) or _has(store, None, None, node) or _has(store, None, direct, None),
    }


def _objects(store: ox.Store, node: ox.NamedNode, predicate: str) -> Iterator[Any]:
    quads = store.quads_for_pattern(node, ox.NamedNode(predicate), None)
    return (quad.object for quad, _ in zip(quads, range(_MOST_LABELS), strict=False))


def _relations(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    node = ox.NamedNode(request["relate"])
    relations = request["relations"]
    return {
        "outgoing": [iri for iri in relations if _has(store, node, ox.NamedNode(iri), None)],
        "incoming": [iri for iri in relations if _has(store, None, ox.NamedNode(iri), node)],
    }


def _answer(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "describe" in request:
            return _describe(store, request)
        if "relate" in request:
            return _relations(store, request)
        return _query(store, request)
    except SyntaxError as wrong:
        return {"unreadable": str(wrong)}
    except _Refused as refused:
        return {"refused": str(refused)}
    except (OSError, ValueError, RuntimeError) as failed:
        return {"failed": str(failed)}


def _read_requests(requests: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    # The parent closed the pipe or is dead: whatever is being evaluated has no reader any more.
    os._exit(0)


def _write(reply: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
    sys.stdout.buffer.flush()


def main(folder: str, memory: int) -> None:
    """Answer requests until the parent closes the pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    leave_network()
    store = ox.Store.read_only(folder)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    _write({})
    while True:
        request = requests.get()
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE)
        reply = _answer(store, request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(reply)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
