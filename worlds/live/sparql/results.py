"""Parse the result formats of SPARQL servers into one table type."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from worlds.live.sparql.label_service import INTERNAL_PREFIX
from worlds.source import Cell, SourceUnavailable, Table
from worlds.text_normalization import replace_unstorable

_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
_RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
_VIRTUOSO_ASK = "__ASK_RETVAL"
_EXCERPT_LENGTH = 120


def parse_results(body: bytes, host: str) -> Table:
    """The table in a server's JSON; SourceUnavailable when the answer broke off or is no result of a query.

    IRIs become cells of kind "iri" with the whole IRI, whatever they stand for.
    """
    document = _parse_json_object(body, host)
    try:
        if isinstance(document.get("boolean"), bool):
            return Table(boolean=document["boolean"])
        columns = _parse_columns(document["head"])
        bindings = document["results"]["bindings"]
        if columns == (_VIRTUOSO_ASK,):
            # No is an empty result, or a row that says 0.
            return Table(boolean=any(row[_VIRTUOSO_ASK]["value"] in {"1", "true"} for row in bindings))
        rows = tuple(tuple(_parse_cell(binding.get(column)) for column in columns) for binding in bindings)
    except (KeyError, TypeError, AttributeError) as odd:
        raise SourceUnavailable(
            f"{host} answered in JSON that is no result of a query ({_format_excerpt(body)}); "
            "check the graph's url in the world's description."
        ) from odd
    return Table(columns, rows)


def drop_internal_columns(table: Table) -> Table:
    """The table without the helper columns that SELECT * returns."""
    positions = [n for n, column in enumerate(table.columns) if not column.startswith(INTERNAL_PREFIX)]
    if len(positions) == len(table.columns):
        return table
    columns = tuple(table.columns[n] for n in positions)
    return replace(table, columns=columns, rows=tuple(tuple(row[n] for n in positions) for row in table.rows))


def merge_rows(table: Table, columns: Sequence[str]) -> Table:
    """The table with rows that differ in these columns only made one, which lists what they had there."""
    many = [table.columns.index(column) for column in columns]
    rows: dict[object, list[tuple[Cell | None, ...]]] = {}
    for number, row in enumerate(table.rows):
        alike = tuple(cell for n, cell in enumerate(row) if n not in many)
        named = any(row[n] is not None for n in many)
        rows.setdefault(alike if named else number, []).append(row)
    return replace(table, rows=tuple(_merge_group(alike, many) for alike in rows.values()))


def _merge_group(rows: Sequence[tuple[Cell | None, ...]], many: Sequence[int]) -> tuple[Cell | None, ...]:
    one = list(rows[0])
    for n in many:
        cells = list(dict.fromkeys(cell for row in rows if (cell := row[n]) is not None))
        if cells:
            one[n] = replace(cells[0], value=", ".join(cell.value for cell in cells))
    return tuple(one)


def _parse_columns(head: dict[str, Any]) -> tuple[str, ...]:
    named = head.get("vars") or []
    if not isinstance(named, list):
        raise TypeError("the columns are no list")
    return tuple(map(str, named))


def _parse_json_object(body: bytes, host: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except RecursionError as deep:
        raise SourceUnavailable(
            f"{host} answered in JSON nested deeper than any result of a query; "
            "check the graph's url in the world's description."
        ) from deep
    except ValueError as broken:
        # A server that gives up in the middle of an answer has long said 200.
        if body.lstrip()[:1] == b"{":
            raise SourceUnavailable(
                f"The answer of {host} broke off after {len(body):,} bytes: the server gave up on the query, "
                "mostly for time; ask for less or ask again."
            ) from broken
        raise SourceUnavailable(
            f"{host} answered something other than results of a query ({_format_excerpt(body)}); "
            "check the graph's url in the world's description."
        ) from broken
    if not isinstance(document, dict):
        raise SourceUnavailable(f"{host} answered in JSON that is no result of a query ({_format_excerpt(body)}).")
    return document


def _format_excerpt(body: bytes) -> str:
    text = " ".join(body[: 4 * _EXCERPT_LENGTH].decode("utf-8", "replace").split())
    return f"it begins {text[:_EXCERPT_LENGTH]!r}" if text else "it is empty"


def _parse_cell(value: dict[str, Any] | None) -> Cell | None:
    if value is None:
        return None
    text = replace_unstorable(str(value["value"]))
    match value["type"]:
        case "uri":
            # Virtuoso gives blank nodes as IRIs of a scheme of its own.
            return Cell("blank", text.removeprefix("nodeID://")) if text.startswith("nodeID://") else Cell("iri", text)
        case "bnode":
            return Cell("blank", text.removeprefix("nodeID://").removeprefix("_:"))
        case "literal" | "typed-literal":
            language = value.get("xml:lang") or None
            datatype = _RDF_LANG_STRING if language else value.get("datatype") or _XSD_STRING
            return Cell("literal", text, str(datatype), language)
        case other:
            return Cell("literal", f"{other} {text}")
