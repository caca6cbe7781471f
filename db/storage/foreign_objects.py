"""Objects of a database that Showhow's migrations did not make: triggers, views, functions, changed tables ...

The schema is compared object by object with what the migrations make at the same revision. Such an object runs with the
rights of whoever opens the database, so a database with one is opened only to take its rows over.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from sqlalchemy import Connection, text

Schema = Mapping[tuple[str, str], object]
"""The definition of each object by its kind and name; equal definitions behave alike."""

_SQLITE_STATISTICS = {"sqlite_stat1", "sqlite_stat4", "sqlite_sequence"}
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(\w+)"|"(?:[^"]|"")*"|\w+|\S""")
"""A string, a quoted name (as a group, if it is one word), a word or another character."""
_MAX_NAMED = 5
_MAX_NAME_CHARACTERS = 60
LEFT_OUT = "it has what Showhow did not make, and only its rows were taken over"
REMEDY = "`showhow db backup FILE` and `showhow db restore FILE` take over its rows alone"


def digest_schema(schema: Schema) -> str:
    """A SHA-256 digest; equal for equal schemas only."""
    return sha256(repr(sorted(schema.items())).encode()).hexdigest()


def list_foreign(actual: Schema, expected: Schema) -> list[str]:
    """Name the objects that are not expected, or not as expected."""
    named = [
        f"the {kind} {_shorten(name)}" + (", which differs from Showhow's" if (kind, name) in expected else "")
        for (kind, name), definition in sorted(actual.items(), key=lambda item: item[0])
        if (kind, name) not in expected or expected[kind, name] != definition
    ]
    return [*named[:_MAX_NAMED], *([f"{len(named) - _MAX_NAMED} more"] if len(named) > _MAX_NAMED else [])]


def list_missing(actual: Schema, expected: Schema) -> list[str]:
    """Name the objects that should be there."""
    return [f"the {kind} {name}" for kind, name in sorted(expected.keys() - actual.keys())]


def _shorten(name: str) -> str:
    printable = "".join(character if character.isprintable() else "?" for character in name[: _MAX_NAME_CHARACTERS + 1])
    return printable if len(name) <= _MAX_NAME_CHARACTERS else f"{printable[:_MAX_NAME_CHARACTERS]}…"


def describe_sqlite(rows: Iterable[tuple[object, object, object, object]]) -> Schema:
    """The schema of a SQLite database by its rows of type, name, table and SQL in sqlite_schema."""
    return dict(_describe_sqlite_rows(rows))


SQLITE_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema"


def _describe_sqlite_rows(
    rows: Iterable[tuple[object, object, object, object]],
) -> Iterator[tuple[tuple[str, str], object]]:
    for kind, name, owner, sql in rows:
        if kind == "table" and name in _SQLITE_STATISTICS:
            continue
        # The index of a constraint has no SQL; it is as its table says.
        if kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_"):
            continue
        label = str(name) if name == owner else f"{name} of {owner}"
        yield (str(kind), label), _outline(sql) if isinstance(sql, str) else sql


def _outline(sql: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """What comes before the parentheses, the clauses in them in order of their text, and what follows.

    Blanks and the quotes of plain words say nothing; a migration may write constraints and columns in another order.
    """
    before: list[str] = []
    clauses: list[list[str]] = [[]]
    after: list[str] = []
    depth, part = 0, before
    for match in _TOKEN.finditer(sql):
        word = match[1] or match[0]
        depth -= word == ")"
        if depth == 0 and word in "()":
            part = after if word == ")" else part
        elif depth == 0:
            part.append(word)
        elif depth == 1 and word == ",":
            clauses.append([])
        else:
            clauses[-1].append(word)
        depth += word == "("
    is_table = before[:2] == ["CREATE", "TABLE"]
    return tuple(before), tuple(map(tuple, sorted(clauses) if is_table else clauses)), tuple(after)


_POSTGRESQL_SCHEMA = text("""
WITH relation AS (
    SELECT c.* FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = c.oid AND e.classid = 'pg_class'::regclass AND e.deptype = 'e')
)
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
    WHEN 'f' THEN 'foreign table' ELSE 'partitioned table' END, relname::text,
    concat_ws(' ', relpersistence, relrowsecurity, relispartition, reloptions::text) FROM relation WHERE relkind NOT IN ('i', 'c', 't')
UNION ALL SELECT 'column', r.relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod), attnotnull,
    attgenerated, attidentity, nullif(attcollation, 100), pg_get_expr(d.adbin, d.adrelid))
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid
    LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
    WHERE r.relkind IN ('r', 'p', 'f') AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'constraint', conname || ' of ' || r.relname, pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN relation r ON r.oid = k.conrelid WHERE contype <> 'n'
UNION ALL SELECT 'index', i.relname || ' of ' || r.relname,
    replace(pg_get_indexdef(x.indexrelid), ' ON ' || quote_ident(current_schema()) || '.', ' ON ')
    FROM pg_index x JOIN relation r ON r.oid = x.indrelid JOIN relation i ON i.oid = x.indexrelid
UNION ALL SELECT 'trigger', tgname || ' of ' || r.relname, concat_ws(' ', tgenabled, pg_get_triggerdef(t.oid, true))
    FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid WHERE NOT tgisinternal
UNION ALL SELECT 'rule', rulename || ' of ' || r.relname, '' FROM pg_rewrite w JOIN relation r ON r.oid = w.ev_class
    WHERE r.relkind NOT IN ('v', 'm')
UNION ALL SELECT 'policy', polname || ' of ' || r.relname, '' FROM pg_policy p JOIN relation r ON r.oid = p.polrelid
UNION ALL SELECT 'inheritance', h.inhrelid::regclass || ' of ' || h.inhparent::regclass, '' FROM pg_inherits h
    JOIN relation r ON r.oid IN (h.inhparent, h.inhrelid) WHERE r.relkind IN ('r', 'p', 'f')
UNION ALL SELECT 'event trigger', evtname::text, '' FROM pg_event_trigger v WHERE NOT EXISTS (
    SELECT FROM pg_depend e WHERE e.objid = v.oid AND e.classid = 'pg_event_trigger'::regclass AND e.deptype = 'e')
UNION ALL SELECT 'function', f.oid::regprocedure::text, concat_ws(' ', l.lanname, prosecdef, proconfig::text, prosrc)
    FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang WHERE f.pronamespace = current_schema()::regnamespace AND NOT EXISTS (
    SELECT FROM pg_depend e WHERE e.objid = f.oid AND e.classid = 'pg_proc'::regclass AND e.deptype = 'e')
UNION ALL SELECT 'called function', u.refobjid::regprocedure || ' in ' || r.relname, '' FROM pg_depend u
    LEFT JOIN pg_attrdef d ON u.classid = 'pg_attrdef'::regclass AND d.oid = u.objid
    LEFT JOIN pg_constraint k ON u.classid = 'pg_constraint'::regclass AND k.oid = u.objid
    LEFT JOIN pg_index x ON u.classid = 'pg_class'::regclass AND x.indexrelid = u.objid
    JOIN relation r ON r.oid = coalesce(d.adrelid, k.conrelid, x.indrelid)
    WHERE u.refclassid = 'pg_proc'::regclass
UNION ALL SELECT 'operator', o.oid::regoperator::text, '' FROM pg_operator o
    WHERE o.oprnamespace = current_schema()::regnamespace AND NOT EXISTS (
    SELECT FROM pg_depend e WHERE e.objid = o.oid AND e.classid = 'pg_operator'::regclass AND e.deptype = 'e')
UNION ALL SELECT 'type', y.typname::text, '' FROM pg_type y
    WHERE y.typnamespace = current_schema()::regnamespace AND y.typtype IN ('d', 'e', 'r') AND NOT EXISTS (
    SELECT FROM pg_depend e WHERE e.objid = y.oid AND e.classid = 'pg_type'::regclass AND e.deptype = 'e')
""")  # noqa: E501 - a line a thing
_REFUSED = "EXECUTE FUNCTION refuse_audit_change()"
POSTGRESQL_ACTIVE: Schema = {
    ("function", "refuse_audit_change()"): "plpgsql f BEGIN RAISE EXCEPTION 'the audit log is append-only'; END",
    (
        "trigger",
        "audit_entry_no_change of audit_entry",
    ): f"O CREATE TRIGGER audit_entry_no_change BEFORE DELETE OR UPDATE ON audit_entry FOR EACH ROW {_REFUSED}",
    ("trigger", "audit_entry_no_truncate of audit_entry"): "O CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE "
    f"ON audit_entry FOR EACH STATEMENT {_REFUSED}",
}
"""What of Showhow acts of itself on PostgreSQL: it refuses changes of the audit log."""
_PASSIVE_KINDS = {"table", "sequence", "column", "constraint", "index"}
"""Objects that a shared database may have beside ours, and that do nothing of themselves."""


def describe_postgresql(connection: Connection) -> Schema:
    """The current schema of a PostgreSQL database, and the event triggers of the whole database."""
    return {(kind, name): definition for kind, name, definition in connection.execute(_POSTGRESQL_SCHEMA)}


def active_objects(schema: Schema) -> Schema:
    """The objects of a PostgreSQL schema that act of themselves."""
    return {(kind, name): definition for (kind, name), definition in schema.items() if kind not in _PASSIVE_KINDS}
