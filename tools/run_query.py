"""The tool runQuery: run a SPARQL query over the graph of a world."""

import re
from typing import Annotated, Any

from showhow.tools.arguments import Accepts, Label, ToolError, require_graph
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.source import Cell, ErrorKind, GraphSource, Table

MAX_ROWS_SHOWN = 20
MAX_LABEL_LOOKUPS = 500
_MAX_CELL_CHARACTERS = 200
_DATE = re.compile(r"(\d{4,9})-(\d\d)-(\d\d)(T00:00:00(?:\.0+)?Z?)?(?:Z)?")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def run_query(
    context: ToolContext,
    sparql: Annotated[
        str, "a SELECT or ASK query in SPARQL", Accepts("query", "entity", "relation"), Label("SPARQL query")
    ],
) -> Observation:
    """Run a SPARQL query over the graph; wd:, wdt:, rdfs: and other usual prefixes need no declaration."""
    graph = require_graph(context.world, "runQuery")
    if not sparql.strip():
        raise ToolError(
            "runQuery needs a SPARQL query; generateQuery writes one from a question and entity ids.",
            ErrorKind.WRONG_ARGUMENTS,
        )
    table = graph.query(sparql)
    rows = _rows_to_json(table, _fetch_labels(graph, table))
    data = {"columns": list(table.columns), "rows": rows, "boolean": table.boolean, "truncated": table.truncated}
    if table.boolean is not None:
        text = "Yes" if table.boolean else "No"
    else:
        # The note of a partial result says why it is truncated.
        text = _format_table(list(table.columns), rows, truncated=table.truncated and not table.note)
    if table.truncated and not rows and not table.boolean:
        text = "Nothing is known of the result."
    return Observation(f"{text}\n{table.note}" if table.note else text, data)


def _fetch_labels(graph: GraphSource, table: Table) -> dict[str, str]:
    """Look up the labels of all entities in the table at once."""
    ids = dict.fromkeys(cell.value for row in table.rows for cell in row if cell and cell.kind == "entity")
    looked_up = list(ids)[:MAX_LABEL_LOOKUPS]
    return {entity.id: entity.label for entity in graph.entities(looked_up)} if looked_up else {}


def _rows_to_json(table: Table, labels: dict[str, str]) -> list[list[dict[str, Any] | None]]:
    return [[_cell_to_json(cell, labels) if cell else None for cell in row] for row in table.rows]


def _cell_to_json(cell: Cell, labels: dict[str, str]) -> dict[str, Any]:
    cell_data: dict[str, Any] = {"kind": cell.kind, "value": cell.value}
    if cell.kind == "entity" and cell.value in labels:
        cell_data["label"] = labels[cell.value]
    if cell.datatype:
        cell_data["datatype"] = cell.datatype
    return cell_data


def _format_table(columns: list[str], rows: list[list[dict[str, Any] | None]], *, truncated: bool) -> str:
    if not rows:
        return "The query matches nothing: no rows."
    lines = [" | ".join(columns), *(" | ".join(map(_format_cell, row)) for row in rows[:MAX_ROWS_SHOWN])]
    omitted = len(rows) - MAX_ROWS_SHOWN
    if omitted > 0:
        lines.append(f"... {omitted} more row{'s' if omitted > 1 else ''}")
    if truncated:
        lines.append(f"Only the first {len(rows)} rows were fetched; the query has more. Narrow it or count.")
    return "\n".join(lines)


def _format_cell(cell_data: dict[str, Any] | None) -> str:
    if cell_data is None:
        return "-"
    if cell_data["kind"] == "entity":
        return f"{cell_data['label']} ({cell_data['value']})" if "label" in cell_data else str(cell_data["value"])
    return format_literal(cell_data["value"], cell_data.get("datatype"))


def format_literal(value: str, datatype: str | None) -> str:
    """Format a value on one line for prompts; a long one is cut, with the number of characters left out."""
    text = format_value(value, datatype)
    return (
        text
        if len(text) <= _MAX_CELL_CHARACTERS
        else f"{text[:_MAX_CELL_CHARACTERS]} ... {len(text) - _MAX_CELL_CHARACTERS} more characters"
    )


def format_value(value: str, datatype: str | None) -> str:
    """Format a date for readers; other values, and years before the common era, are returned unchanged.

    Wikidata stores a date that is known to the year only as midnight of 1 January, so such a date begins with its year.
    """
    match = _DATE.fullmatch(value) if datatype and datatype.endswith(("#dateTime", "#date")) else None
    if match is None:
        return value
    year, month, day = (int(part) for part in match.groups()[:3])
    if not (1 <= month <= 12):
        return value
    if match[4] and (month, day) == (1, 1):
        return f"{year} (1 January)"
    return f"{day} {_MONTHS[month - 1]} {year}"
