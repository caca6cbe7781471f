"""How an observation is drawn: a tool's data becomes a view that the notebook knows."""

import re
from collections.abc import Callable
from typing import Any

from app.components.result_view import result_view
from db.models import Step

View = dict[str, Any]

# Runs of capitalised words: what a reader of a sentence would take to the next search.
NAME = re.compile(
    r"(?<![\w'])[^\W\d_a-z][\w'’.-]*(?:\s(?:(?:of|the|de|von|van|der|al|du|la|and)\s)?[^\W\d_a-z][\w'’-]*)*", re.UNICODE
)
PRONOUNS = frozenset(
    {"He", "She", "It", "They", "The", "A", "An", "In", "On", "At", "His", "Her", "Its", "Their", "This", "That", "As"}
)
MOST_TEXT = 20_000


def view_of(step: Step) -> View:
    """The view of a completed step; foreign and imported observations are shown as their text."""
    data = step.data or {}
    for field, draw in _VIEWS.items():
        if field in data:
            return draw(data)
    text = step.observation or ""
    if "result" in data:
        return result_view(data["result"], text, data.get("attachments") or ())
    cut = f"\n… {len(text) - MOST_TEXT:,} more characters; they are kept and exported" if len(text) > MOST_TEXT else ""
    return {"kind": "text", "text": text[:MOST_TEXT] + cut}


def _hits(data: View) -> View:
    hits = [{**hit, "pointer": f"/hits/{place}"} for place, hit in enumerate(data["hits"])]
    if not hits:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(hit.get("relaxed") for hit in hits)
    return {
        "kind": "hits",
        "hits": hits,
        "note": "No article has all of the words; these have some." if relaxed else None,
    }


def _pages(data: View) -> View:
    pages = [{**page, "pointer": f"/pages/{place}"} for place, page in enumerate(data["pages"])]
    if not pages:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(page.get("relaxed") for page in pages)
    return {
        "kind": "pages",
        "pages": pages,
        "note": "No page has all of the words; these have some." if relaxed else None,
    }


def _choices(data: View) -> View:
    choices = [{"snippet": "", **one, "pointer": f"/choices/{place}"} for place, one in enumerate(data["choices"])]
    note = f"{data['title']} may mean several things; read the one that is meant."
    return {"kind": "hits", "hits": choices, "note": note}


def _article(data: View) -> View:
    best = {item["place"] for item in (*data["best"], *data.get("quotes", ()))}
    sentences = [
        {"text": text, "place": place, "best": place in best, "pointer": f"/sentences/{place}", "names": _names(text)}
        for place, text in enumerate(data["sentences"])
    ]
    return {
        "kind": "article",
        "title": data["title"],
        "entity": data.get("entity"),
        "address": data.get("address"),
        "date": data.get("date"),
        "redirected": data.get("redirected"),
        "best": [sentence for sentence in sentences if sentence["best"]],
        "rest": sentences if len(sentences) > len(best) else [],
        "count": len(sentences),
        "answer": _answer(data) if data.get("route") == "model" else None,
        "note": f"Ranked without the language model. {data['why']}" if data.get("why") else None,
    }


def _answer(data: View) -> View:
    """What the language model made of a text, and how far the text bears it out."""
    told = {"text": data["answer"], "quotes": data["quotes"], "invented": data["invented"]}
    if data["answer"] is None:
        return {**told, "sign": "none", "words": "The language model finds no answer in this text."}
    if data["supported"]:
        return {**told, "sign": "good", "words": "Every quotation stands in the text."}
    words = "Not every quotation stands in the text." if data["quotes"] else "No quotation supports this answer."
    return {**told, "sign": "poor", "words": words}


def _names(sentence: str) -> list[tuple[int, int]]:
    spans = []
    for match in NAME.finditer(sentence):
        start, end = match.span()
        words = match.group().split()
        # A sentence's first word is capitalised whatever it is.
        while words and words[0] in PRONOUNS:
            start += len(words[0]) + 1
            words = words[1:]
        text = sentence[start:end].rstrip(".-'’")
        if len(text) > 2 and words:
            spans.append((start, start + len(text)))
    return spans


def _entities(field: str) -> Callable[[View], View]:
    def draw(data: View) -> View:
        return {"kind": "entities", "entities": [{**e, "pointer": f"/{field}/{i}"} for i, e in enumerate(data[field])]}

    return draw


def _queries(data: View) -> View:
    return {
        "kind": "queries",
        "candidates": [{**c, "pointer": f"/candidates/{i}"} for i, c in enumerate(data["candidates"])],
        "note": _route(data),
        "tried": data.get("tried", []),
    }


def _route(data: View) -> str | None:
    """Who wrote the queries, where a language model was asked."""
    why = data.get("why")
    if data.get("route") == "model":
        return (
            f"Written by the language model. {why}" if why else "Written by the language model and tried on the graph."
        )
    return f"Written by the grammar. {why}" if why else None


def _table(data: View) -> View:
    if data.get("boolean") is not None:
        return {"kind": "boolean", "value": data["boolean"]}
    rows = [
        [None if cell is None else _cell(cell, f"/rows/{i}/{j}") for j, cell in enumerate(row)]
        for i, row in enumerate(data["rows"])
    ]
    note = "There are more rows than the limit; narrow the query to see others." if data.get("truncated") else None
    return {"kind": "table", "columns": data["columns"], "rows": rows, "note": note}


def _cell(cell: View, pointer: str) -> View:
    value = str(cell["value"])
    is_entity = cell["kind"] == "entity"
    midnight = value.removesuffix("T00:00:00Z") if "dateTime" in (cell.get("datatype") or "") else value
    label = cell.get("label") if is_entity else None
    return {
        "value": value,
        "shown": midnight,
        "label": label,
        "kind": "entity" if is_entity else "title",
        "pointer": pointer,
    }


_VIEWS: dict[str, Callable[[View], View]] = {
    "hits": _hits,
    "pages": _pages,
    "choices": _choices,
    "sentences": _article,
    "entities": _entities("entities"),
    "labels": _entities("labels"),
    "candidates": _queries,
    "rows": _table,
}
