"""The api.php of a Wikibase over real HTTP: it answers like Wikidata's, from a graph file.

with serving(Path("wikibase.ttl")) as wiki:
    wiki.api
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import rdflib
from rdflib.namespace import RDFS, SKOS

from showhow.worlds import terms
from tests.servers.loopback import QuietServer

_MOST = 50
_ENTITY = rdflib.Namespace(terms.ENTITY_NAMESPACE)
_SITES = 300
"""Sites that a well-known item of Wikidata has links to."""
_MERGED = {"Q77": "Q1"}
"""Ids of items that were merged, with the items that they redirect to."""


@dataclass(slots=True)
class Wiki:
    """A running wiki; `asked` lists its requests, and it answers with an error while `ill`."""

    graph: rdflib.Graph
    api: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    ill: bool = False

    def answer(self, query: dict[str, str]) -> dict[str, Any]:
        """The answer of api.php to these parameters."""
        self.asked.append(query)
        if self.ill:
            return {"error": {"code": "readapidenied", "info": "The wiki is ill."}}
        match query["action"], query.get("list"):
            case "wbgetentities", _:
                return self._entities(query)
            case "wbsearchentities", _:
                named = self._begun(query["search"], query.get("type", "item"))
                return {"search": [{"id": one} for one in named][: int(query["limit"])]}
            case "query", "search":
                return {"query": {"search": [{"ns": 0, "title": one} for one in self._with_words(query["srsearch"])]}}
        return {"error": {"code": "badvalue", "info": f"Unrecognized value for parameter action: {query['action']}."}}

    def _entities(self, query: dict[str, str]) -> dict[str, Any]:
        ids = query["ids"].split("|")
        if len(ids) > _MOST:
            return {"error": {"code": "toomanyvalues", "info": f'Too many values for "ids". The limit is {_MOST}.'}}
        if beyond := next((one for one in ids if int(one[1:]) > 2**31 - 1), None):
            return {"error": {"code": "no-such-entity", "info": f'Could not find an entity with the ID "{beyond}".'}}
        entities = {}
        for one in ids:
            meant = _MERGED.get(one, one)
            facts = self._facts(meant, query["languages"].split("|") if "languages" in query else None)
            if "missing" not in facts:
                # PHP writes an empty object as an empty list.
                facts["sitelinks"] = self._sitelinks(meant, query) or []
            if meant != one:
                facts["redirects"] = {"from": one, "to": meant}
            entities[one] = facts
        return {"entities": entities, "success": 1}

    def _facts(self, one: str, languages: list[str] | None) -> dict[str, Any]:
        node = _ENTITY[one]
        if (node, None, None) not in self.graph:
            return {"id": one, "missing": True}
        facts: dict[str, Any] = {"type": "item", "id": one, "labels": {}, "descriptions": {}, "aliases": {}}
        for predicate, kind in ((RDFS.label, "labels"), (rdflib.SDO.description, "descriptions")):
            for text in self.graph.objects(node, _http(predicate)):
                if languages is None or text.language in languages:
                    facts[kind][text.language] = {"language": text.language, "value": str(text)}
        for text in self.graph.objects(node, SKOS.altLabel):
            facts["aliases"].setdefault(text.language, []).append({"language": text.language, "value": str(text)})
        # PHP writes an empty object as an empty list.
        return {name: value or [] if isinstance(value, dict) else value for name, value in facts.items()}

    def _sitelinks(self, one: str, query: dict[str, str]) -> dict[str, dict[str, str]]:
        """The links to all sites, or to those of sitefilter only; with an address if it is asked for."""
        if not {"sitelinks", "sitelinks/urls"} & set(query["props"].split("|")):
            return {}
        pages = [str(page) for page in self.graph.subjects(_http(rdflib.SDO.about), _ENTITY[one])]
        pages += [f"https://x{number}.wikipedia.org/wiki/{one}" for number in range(_SITES)]
        links = {}
        for page in pages:
            site = page.partition("//")[2].partition(".")[0] + "wiki"
            links[site] = {"site": site, "title": str(terms.title_from_page_iri(page)), "badges": ""}
            if "sitelinks/urls" in query["props"]:
                links[site]["url"] = page
        wanted = query.get("sitefilter", "").split("|")
        return {site: link for site, link in links.items() if "sitefilter" not in query or site in wanted}

    def _names(self, kind: str = "item") -> Iterator[tuple[str, str]]:
        for predicate in (RDFS.label, SKOS.altLabel):
            for node, name in self.graph.subject_objects(predicate):
                one = str(node).removeprefix(terms.ENTITY_NAMESPACE)
                if one.startswith({"item": "Q", "property": "P"}[kind]):
                    yield str(name).casefold(), one

    def _begun(self, search: str, kind: str) -> list[str]:
        return sorted({one for name, one in self._names(kind) if name.startswith(search.casefold())})

    def _with_words(self, search: str) -> list[str]:
        words = set(search.casefold().split())
        return sorted({one for name, one in self._names() if words <= set(name.split())})


def _http(term: rdflib.URIRef) -> rdflib.URIRef:
    # Wikidata writes schema.org without the s.
    return rdflib.URIRef(str(term).replace("https://schema.org/", "http://schema.org/"))


@contextmanager
def serving(file: Path) -> Iterator[Wiki]:
    """Run a wiki with the entities of this file on a free port."""
    wiki = Wiki(rdflib.Graph().parse(file))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(wiki.answer(dict(parse_qsl(urlsplit(self.path).query)))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    wiki.api = f"http://127.0.0.1:{server.server_port}/w/api.php"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield wiki
    finally:
        server.shutdown()
        server.server_close()
