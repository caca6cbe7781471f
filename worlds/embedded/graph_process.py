"""The process that answers queries to one graph: `python -m showhow.worlds.embedded.graph_process FOLDER MEMORY_BYTES`.

Writes {} when it has opened the graph; then reads one JSON request a line and writes one JSON reply a line:
    {"sparql", "rows", "bytes", "seconds"}  ->  {"columns", "rows", "truncated"} or {"boolean"}
    {"describe": [iri, ...]}                ->  {"entities": [{"iri", "labels", "aliases", ...}, ...]}
    {"relate": iri, "relations": [iri ...]} ->  {"outgoing": [iri ...], "incoming": [iri ...]}
or {"unreadable": parser message}, {"refused": reason}, {"failed": reason}.
The parent kills it when a query exceeds its limits; it exits when the parent closes the pipe or dies.
It denies itself network access where the kernel can do so.
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

from showhow.guard.limits import disable_network
from showhow.worlds import terms

_GRACE_SECONDS = 2.0
"""Seconds past its time limit after which a query ends its process, even if the parent is gone."""
_MAX_LABELS = 2000
"""Maximum names read of one entity; some items have labels in hundreds of languages."""


class _UnsupportedQuery(Exception):
    """The query is not a SELECT or ASK."""


def _encode_term(term: Any, store: ox.Store) -> dict[str, str] | None:
    if isinstance(term, ox.NamedNode):
        is_entity = terms.is_entity(term.value) or _has_triple(store, term, ox.NamedNode(terms.RDFS_LABEL), None)
        return {"kind": "entity" if is_entity else "iri", "value": terms.shorten_iri(term.value)}
    if isinstance(term, ox.Literal):
        cell = {"kind": "literal", "value": term.value, "datatype": term.datatype.value}
        return cell | {"language": term.language} if term.language else cell
    if isinstance(term, ox.BlankNode):
        return {"kind": "blank", "value": term.value}
    return None if term is None else {"kind": "literal", "value": str(term)}


def _has_triple(store: ox.Store, subject: Any, predicate: Any, value: Any) -> bool:
    return next(store.quads_for_pattern(subject, predicate, value), None) is not None


def _run_query(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    results = store.query(request["sparql"], prefixes=terms.PREFIXES)
    if isinstance(results, ox.QueryBoolean):
        return {"boolean": bool(results)}
    if not isinstance(results, ox.QuerySolutions):
        raise _UnsupportedQuery(
            "Only SELECT and ASK are answered; CONSTRUCT and DESCRIBE are not; SELECT the values instead."
        )
    columns = [variable.value for variable in results.variables]
    rows: list[list[dict[str, str] | None]] = []
    size, truncated = 0, False
    for solution in results:
        row = [_encode_term(solution[column], store) for column in columns]
        size += sum(len(cell["value"]) + 60 for cell in row if cell)
        if len(rows) == request["rows"] or size > request["bytes"]:
            truncated = True
            break
        rows.append(row)
    return {"columns": columns, "rows": rows, "truncated": truncated}


def _describe_entities(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    nodes = [_parse_node(iri) for iri in request["describe"]]
    return {"entities": [_describe_entity(store, node) for node in nodes if node is not None]}


def _parse_node(iri: str) -> ox.NamedNode | None:
    """The node of an IRI as typed; None for an invalid IRI such as x:%."""
    try:
        return ox.NamedNode(iri)
    except ValueError:
        return None


def _describe_entity(store: ox.Store, node: ox.NamedNode) -> dict[str, Any]:
    def literals(predicate: str) -> list[list[str]]:
        return [
            [value.value, value.language or ""]
            for value in _iter_objects(store, node, predicate)
            if isinstance(value, ox.Literal)
        ]

    about_quads = store.quads_for_pattern(None, ox.NamedNode(terms.SCHEMA_ABOUT), node)
    direct_predicate = (
        ox.NamedNode(terms.DIRECT_NAMESPACE + terms.shorten_iri(node.value)) if terms.is_entity(node.value) else node
    )
    return {
        "iri": node.value,
        "labels": literals(terms.RDFS_LABEL),
        "aliases": literals(terms.SKOS_ALT_LABEL),
        "descriptions": literals(terms.SCHEMA_DESCRIPTION),
        "pages": [
            page.subject.value
            for page, _ in zip(about_quads, range(_MAX_LABELS), strict=False)
            if isinstance(page.subject, ox.NamedNode)
        ],
        "known": _has_triple(store, node, None, None)
        or _has_triple(store, None, None, node)
        or _has_triple(store, None, direct_predicate, None),
    }


def _iter_objects(store: ox.Store, node: ox.NamedNode, predicate: str) -> Iterator[Any]:
    quads = store.quads_for_pattern(node, ox.NamedNode(predicate), None)
    return (quad.object for quad, _ in zip(quads, range(_MAX_LABELS), strict=False))


def _find_relations(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    node = ox.NamedNode(request["relate"])
    relations = request["relations"]
    return {
        "outgoing": [iri for iri in relations if _has_triple(store, node, ox.NamedNode(iri), None)],
        "incoming": [iri for iri in relations if _has_triple(store, None, ox.NamedNode(iri), node)],
    }


def _handle_request(store: ox.Store, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "describe" in request:
            return _describe_entities(store, request)
        if "relate" in request:
            return _find_relations(store, request)
        return _run_query(store, request)
    except SyntaxError as error:
        return {"unreadable": str(error)}
    except _UnsupportedQuery as error:
        return {"refused": str(error)}
    except (OSError, ValueError, RuntimeError) as error:
        return {"failed": str(error)}


def _read_requests(requests: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    # The parent closed the pipe or died: the reply to a running query would have no reader.
    os._exit(0)


def _write_reply(reply: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
    sys.stdout.buffer.flush()


def main(folder: str, memory: int) -> None:
    """Answer requests until the parent closes the pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    disable_network()
    store = ox.Store.read_only(folder)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    _write_reply({})
    while True:
        request = requests.get()
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE_SECONDS)
        reply = _handle_request(store, request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write_reply(reply)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
