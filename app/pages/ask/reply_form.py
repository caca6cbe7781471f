"""The form in which a person writes the reply of a skill, made from the schema of the reply.

    fields = list_reply_fields(PlanReply)
    rows = to_rows(fields[0], document)         # a list of objects as a table
    document |= from_rows(fields[0], rows)

Lists of objects are tables. A list of objects within such an object is a table of its own, whose first column names the
row that it belongs to: by its id, or else by its number. What is nested deeper is a text field with JSON. The help of a
field is its docstring in the reply's class.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import pyarrow as pa
import streamlit as st
from pydantic import BaseModel

from showhow.app.field_docstrings import read_field_docstrings
from showhow.app.widgets.page_layout import escape_markdown
from showhow.db.models import Step
from showhow.reasoners.skills.skill import Skill, read_reply
from showhow.reasoners.skills.values import GraphFact

TEXT, NUMBER, FLAG, CHOICE, LIST, TABLE, OBJECT, JSON_TEXT = (
    "text", "number", "flag", "choice", "list", "table", "object", "json",
)  # fmt: skip
OWNER = "row"
"""The column that names the row of the outer table."""
ITEM = "value"
"""The one column of a list of texts or numbers."""
MEANING = "meaning"
"""The column with what the request says of a row's id."""
_MAX_DIGITS = 300
REQUEST_ROWS, REQUEST_HEIGHT = 8, 320
"""Longer tables of a request scroll in so many pixels."""


@dataclass(frozen=True, slots=True)
class ReplyField:
    """A field of a reply: its kind, and the fields of the objects in it."""

    name: str
    kind: str
    is_optional: bool = False
    """Whether it may be missing."""
    is_whole: bool = False
    """Whether a number is a whole one; for a list, whether its items are."""
    choices: tuple[str, ...] = ()
    fields: tuple["ReplyField", ...] = ()
    help: str = ""
    """What it holds, in a sentence."""

    @property
    def columns(self) -> list["ReplyField"]:
        """The fields of a table's objects that are columns."""
        return [field for field in self.fields if field.kind != TABLE]

    @property
    def inner_tables(self) -> list["ReplyField"]:
        """The fields of a table's objects that are tables of their own."""
        return [field for field in self.fields if field.kind == TABLE]

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ").capitalize()


def list_reply_fields(reply_type: type[BaseModel], depth: int = 0) -> tuple[ReplyField, ...]:
    """The fields of a reply's form."""
    docstrings = read_field_docstrings(reply_type)
    return tuple(
        replace(
            _to_field(name, field.annotation, depth, is_optional=not field.is_required()),
            help=docstrings.get(name, ""),
        )
        for name, field in reply_type.model_fields.items()
    )


def list_meanings(request: Mapping[str, Any]) -> dict[str, str]:
    """What the lists of a request say of the relations and facts in them, by their ids."""
    entries = [entry for value in request.values() if isinstance(value, list) for entry in value]
    return {
        str(entry["id"]): _describe(entry)
        for entry in entries
        if isinstance(entry, dict) and "id" in entry and not entry.keys().isdisjoint({"label", "relation"})
    }


def _to_field(name: str, annotation: Any, depth: int, *, is_optional: bool) -> ReplyField:
    plain, allows_none = _strip_annotation(annotation)
    optional = is_optional or allows_none
    if plain in (str, bool, int, float):
        kind = {str: TEXT, bool: FLAG}.get(plain, NUMBER)
        return ReplyField(name, kind, optional, is_whole=plain is int)
    if get_origin(plain) is Literal:
        return ReplyField(name, CHOICE, optional, choices=tuple(map(str, get_args(plain))))
    if get_origin(plain) is list:
        item, _ = _strip_annotation(get_args(plain)[0])
        if item in (str, int):
            return ReplyField(name, LIST, optional, is_whole=item is int)
        if depth < 2 and isinstance(item, type) and issubclass(item, BaseModel):
            return ReplyField(name, TABLE, optional, fields=list_reply_fields(item, depth + 1))
    if depth == 0 and isinstance(plain, type) and issubclass(plain, BaseModel):
        return ReplyField(name, OBJECT, optional, fields=list_reply_fields(plain, depth + 1))
    return ReplyField(name, JSON_TEXT, optional)


def _strip_annotation(annotation: Any) -> tuple[Any, bool]:
    """The type without Annotated and without None, and whether it allows None."""
    if get_origin(annotation) is Annotated:
        return _strip_annotation(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        if len(parts) == 1:
            return _strip_annotation(parts[0])[0], len(parts) < len(get_args(annotation))
    return annotation, False


Row = dict[str, Any]


def to_rows(field: ReplyField, objects: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """The tables of a list of objects by the names of their fields; the outer one first."""
    tables: dict[str, list[Row]] = {field.name: [], **{inner.name: [] for inner in field.inner_tables}}
    for number, entry in enumerate(objects, 1):
        row = {column.name: _to_cell(column, entry.get(column.name)) for column in field.columns}
        tables[field.name].append(row)
        for inner in field.inner_tables:
            cells = [
                {column.name: _to_cell(column, part.get(column.name)) for column in inner.fields}
                for part in entry.get(inner.name, ())
            ]
            tables[inner.name] += [{OWNER: _owner_of(entry, number), **row} for row in cells]
    return tables


def from_rows(field: ReplyField, tables: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """The list of objects that the tables say; rows without any value are left out."""
    filled = [row for row in tables[field.name] if _has_value(row.values())]
    if not field.columns:
        # The objects have nothing but inner lists: there are as many as their rows name.
        owners = [row.get(OWNER) or 1 for inner in field.inner_tables for row in tables[inner.name]]
        filled = [{} for _ in range(max(owners, default=0))]
    return [
        _to_object(field.columns, row)
        | {
            inner.name: [
                _to_object(inner.fields, part)
                for part in tables[inner.name]
                if part.get(OWNER) == _owner_of(row, number)
                and _has_value(part[column.name] for column in inner.fields)
            ]
            for inner in field.inner_tables
        }
        for number, row in enumerate(filled, 1)
    ]


def _has_value(cells: Iterable[Any]) -> bool:
    # The number 0 is a value, though it equals False.
    return any(cell is not None and cell is not False and cell != "" for cell in cells)


def _owner_of(row: Mapping[str, Any], number: int) -> int:
    id_ = row.get("id")
    return id_ if isinstance(id_, int) else number


def _to_cell(field: ReplyField, value: Any) -> Any:
    if value is None:
        return False if field.kind == FLAG else None
    if field.kind == LIST:
        return ", ".join(map(str, value)) if field.is_whole else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False) if field.kind in (TABLE, OBJECT, JSON_TEXT) else value


def _to_object(fields: Sequence[ReplyField], row: Row) -> dict[str, Any]:
    values = ((field, row.get(field.name)) for field in fields)
    return {field.name: _from_cell(field, value) for field, value in values if not _is_absent(field, value)}


def _is_absent(field: ReplyField, value: Any) -> bool:
    return value is None or (value == "" and (field.is_optional or field.kind != TEXT))


def _from_cell(field: ReplyField, value: Any) -> Any:
    if field.kind == LIST and field.is_whole:
        # A word that is no number stays a text, so that the check of the reply names it.
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        is_number = [word.removeprefix("-").isdecimal() and len(word) <= _MAX_DIGITS for word in words]
        return [int(word) if number else word for word, number in zip(words, is_number, strict=True)]
    if field.kind in (LIST, TABLE, OBJECT, JSON_TEXT):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


class FormButton(NamedTuple):
    """The button that submits a reply, with its key."""

    label: str
    shortcut: str


def show_reply_form(skill: Skill[Any, Any], step: Step, note: str, button: FormButton) -> dict[str, Any] | None:
    """Draw what a step asks and the form of its reply; returns the reply as JSON once it is submitted, else None."""
    name = escape_markdown(skill.name.replace("_", " "))
    st.markdown(f"Step {step.position}, **{name}**: {escape_markdown(skill.description)}")
    st.caption(note)
    with st.expander("What was asked", expanded=step.finished_at is None):
        _show_request(step.arguments)
    with st.form(f"reply_{step.id.hex}", border=False):
        drawing = ReplyDrawing(list_meanings(step.arguments))
        document = drawing.draw_fields(
            list_reply_fields(skill.reply_type), _initial_document(skill, step), f"reply_{step.id.hex}"
        )
        is_submitted = st.form_submit_button(
            button.label,
            type="primary",
            icon=":material/play_arrow:",
            shortcut=button.shortcut,
            key="reply_submit",
        )
    return document if is_submitted else None


def _initial_document(skill: Skill[Any, Any], step: Step) -> dict[str, Any]:
    """The stored reply, or else the skill's draft."""
    reply = read_reply(step)
    if reply is not None or skill.draft is None:
        return dict(reply or {})
    draft: BaseModel = skill.draft(skill.request_type.model_validate(step.arguments))
    return draft.model_dump(mode="json", exclude_none=True)


_VALUE_KEYS = {"text", "entity", "of", "values"}
"""The fields of answers and operands, which are words in a line."""


def _show_request(arguments: Mapping[str, Any]) -> None:
    """Draw a request: texts as lines, passages with their ids, other lists of objects as tables."""
    for name, value in arguments.items():
        if value == []:
            continue
        label = escape_markdown(name.replace("_", " ").capitalize())
        is_table = isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
        if not is_table or all(entry.keys() <= _VALUE_KEYS for entry in value):
            st.markdown(f"**{label}**: {escape_markdown(_describe(value))}")
        elif all({"id", "title", "text"} <= entry.keys() for entry in value):
            st.markdown(f"**{label}**")
            with st.container(height=min(REQUEST_HEIGHT, 70 * len(value))):
                for entry in value:
                    title, text = escape_markdown(entry["title"]), escape_markdown(entry["text"])
                    st.markdown(f"{escape_markdown(entry['id'])} **{title}** {text}")
        else:
            st.markdown(f"**{label}**")
            rows = [{key: _describe(part) for key, part in entry.items()} for entry in value]
            st.dataframe(rows, hide_index=True, height="auto" if len(rows) < REQUEST_ROWS else REQUEST_HEIGHT)


def _describe(value: Any) -> str:
    """A value of a request in words: an answer with its id, a relation by its label."""
    if isinstance(value, list):
        return ", ".join(map(_describe, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _describe_object(value) if isinstance(value, dict) else str(value)


def _describe_object(value: Mapping[str, Any]) -> str:
    if {"known", "relation", "other"} <= value.keys():
        return GraphFact.model_validate(value).passage.text
    if "label" in value:
        return str(value["label"])
    if "text" in value:
        return f"{value['text']} ({value['entity']})" if value.get("entity") else str(value["text"])
    if value.keys() == {"values"}:
        return _describe(value["values"])
    return ", ".join(f"{name}: {_describe(part)}" for name, part in value.items())


@dataclass(frozen=True, slots=True)
class ReplyDrawing:
    """Draws the fields of a reply."""

    meanings: Mapping[str, str]
    """What the request says of each id; tables with ids show it in a column that cannot be edited."""

    def draw_fields(self, fields: Sequence[ReplyField], document: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Draw the fields with their values; returns the document that they say."""
        return {
            field.name: value
            for field in fields
            for value in self._draw_field(field, document.get(field.name), f"{key}_{field.name}")
        }

    def _draw_field(self, field: ReplyField, value: Any, key: str) -> Iterator[Any]:
        """Draw one field; yields its value unless it is absent."""
        if field.kind == TABLE:
            yield from_rows(field, self._draw_tables(field, to_rows(field, value or ()), key))
            return
        if field.kind == OBJECT:
            with st.container(border=True):
                if not field.is_optional or st.checkbox(f"{field.label} is given", value=value is not None, key=key):
                    yield self.draw_fields(field.fields, value or {}, key)
            return
        if field.kind == LIST:
            rows = [{ITEM: item} for item in value or ()]
            column = ReplyField(ITEM, NUMBER if field.is_whole else TEXT, is_whole=field.is_whole, help=field.help)
            edited = self._draw_table(field, [column], rows, key)
            yield [row[ITEM] for row in edited if row[ITEM] not in (None, "")]
            return
        entered = self._draw_input(field, value, key)
        if not _is_absent(field, entered):
            yield _from_cell(field, entered)

    @staticmethod
    def _draw_input(field: ReplyField, value: Any, key: str) -> Any:
        help_text = field.help or None
        if field.kind == FLAG:
            return st.checkbox(field.label, value=bool(value), key=key, help=help_text)
        if field.kind == NUMBER:
            return st.number_input(
                field.label, value=value, step=1 if field.is_whole else None, key=key, help=help_text
            )
        if field.kind == CHOICE:
            index = field.choices.index(value) if value in field.choices else None
            return st.selectbox(field.label, field.choices, index=index, key=key, help=help_text)
        text = "" if value is None else str(_to_cell(field, value))
        return st.text_area(field.label, value=text, height="content", key=key, help=help_text)

    def _draw_tables(self, field: ReplyField, tables: Mapping[str, list[Row]], key: str) -> dict[str, list[Row]]:
        edited = {field.name: self._draw_table(field, field.columns, tables[field.name], key) if field.columns else []}
        has_id = any(column.name == "id" for column in field.columns)
        owner_help = f"The {'id' if has_id else 'number'} of the row in {field.label} that it belongs to."
        owner = ReplyField(OWNER, NUMBER, is_whole=True, help=owner_help)
        for inner in field.inner_tables:
            edited[inner.name] = self._draw_table(
                inner, [owner, *inner.fields], tables[inner.name], f"{key}_{inner.name}"
            )
        return edited

    def _draw_table(self, field: ReplyField, columns: Sequence[ReplyField], rows: Sequence[Row], key: str) -> list[Row]:
        """Draw an editable table, to which rows can be added."""
        st.markdown(f"**{escape_markdown(field.label)}.** {escape_markdown(field.help)}")
        types = {NUMBER: pa.float64(), FLAG: pa.bool_()}
        schema = pa.schema(
            [
                (
                    column.name,
                    pa.int64() if column.is_whole and column.kind == NUMBER else types.get(column.kind, pa.string()),
                )
                for column in columns
            ]
        )
        config = {column.name: _configure_column(column) for column in columns}
        order = [column.name for column in columns]
        shown = [row | {MEANING: self.meanings.get(str(row.get("id")))} for row in rows]
        if any(row[MEANING] for row in shown):
            schema = schema.append(pa.field(MEANING, pa.string()))
            order.insert(order.index("id") + 1, MEANING)
            config[MEANING] = st.column_config.TextColumn(
                MEANING.capitalize(), disabled=True, help="What the request says of the id."
            )
        edited = st.data_editor(
            pa.Table.from_pylist(shown, schema),
            num_rows="dynamic",
            column_config=config,
            column_order=order,
            width="stretch",
            key=key,
        )
        names = {column.name for column in columns}
        return [{name: cell for name, cell in row.items() if name in names} for row in edited.to_pylist()]


def _configure_column(column: ReplyField) -> Any:
    is_number_list = column.kind == LIST and column.is_whole
    help_text = " ".join(filter(None, (column.help, "Numbers with commas between them." if is_number_list else "")))
    if column.kind == CHOICE:
        return st.column_config.SelectboxColumn(column.label, options=column.choices, help=help_text)
    if column.kind == FLAG:
        return st.column_config.CheckboxColumn(column.label, width="small", help=help_text)
    if column.kind == NUMBER:
        step = 1 if column.is_whole else None
        return st.column_config.NumberColumn(column.label, width="small", step=step, help=help_text)
    return st.column_config.TextColumn(column.label, width="small" if is_number_list else None, help=help_text)
