"""The gold queries of a world's questions, run on its graph."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from worlds.graph import EmbeddedGraph
from worlds.questions.evaluate import Evaluation
from worlds.questions.expressions import is_chain
from worlds.source import Cell, QueryRefused, SourceTimeout, Table
from worlds.universe.universe import Universe
from worlds.verification.answers import UNREADABLE_ROW, expression_of, name_of, written
from worlds.verification.check import Check
from worlds.worker import Limits

_LIMITS = Limits(seconds=20.0, rows=1_000_000, reply=64 << 20)


def check_queries(folder: Path, rows: Iterable[dict[str, Any]], told: Universe) -> Check:
    """Every query gives the gold answers where the graph alone tells enough for them; else, for a chain, the answers
    that follow from what the graph tells.
    """
    check = Check("answers of queries")
    with closing(EmbeddedGraph(folder, limits=_LIMITS, workers=1)) as graph:
        for row in rows:
            what = f"query of {name_of(row)}"
            try:
                derived = _expected(row, told)
                if row.get("sparql") and derived is not None:
                    _compare(check, what, graph.query(row["sparql"]), derived)
            except SourceTimeout:
                check.undecided += 1
            except (QueryRefused, *UNREADABLE_ROW) as broken:
                check.broken(what, broken)
    return check


def _expected(row: dict[str, Any], told: Universe) -> list[str] | None:
    if ["graph"] in row["needs"]:
        return [answer.get("entity") or answer["text"] for answer in row["answers"]]
    expression = expression_of(row)
    if not is_chain(expression):
        # Who may still live, or had no wedding, cannot be told from who died and is not told of.
        return None
    return [entity or text for text, entity in written(Evaluation(told).answer(expression), told)]


def _compare(check: Check, what: str, table: Table, derived: list[str]) -> None:
    if table.truncated:
        check.undecided += 1
        return
    check.compare(what, sorted(derived), sorted(set(_found(table))))


def _found(table: Table) -> Iterator[str]:
    if table.boolean is not None:
        yield "yes" if table.boolean else "no"
    for row in table.rows:
        if row and row[0] is not None:
            yield _value(row[0])


def _value(cell: Cell) -> str:
    if cell.datatype is not None and cell.datatype.endswith("#dateTime"):
        return cell.value.partition("T")[0]
    return cell.value
