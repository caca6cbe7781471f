"""Live worlds: overhead over raw requests, latency of recorded responses, and twenty concurrent users."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import httpx

from showhow.benchmarks.servers import run_slow_endpoint
from showhow.worlds.live.http.request import Access
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from showhow.worlds.source import World
from tests.servers import mediawiki, oxigraph
from tests.servers.live_world import description
from tests.servers.wiki_pages import real_pages

REQUEST_COUNT = 200
CONCURRENT_PEOPLE = 20
ENDPOINT_SECONDS = 1.0
BENCH_ACCESS = Access("bench@showhow.example")
SourceType = TypeVar("SourceType")


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Overhead over raw requests of the same run, recorded responses, and concurrent users."""
    if data is not None:
        with ExitStack() as opened:
            yield from _measure_real_servers(home, data, opened)
    with run_slow_endpoint(ENDPOINT_SECONDS) as url:
        for at_once in (CONCURRENT_PEOPLE, 3):
            yield _measure_concurrent_people(home / f"at_once_{at_once}", url, at_once)


def _open_live_world(folder: Path, api: str | None, endpoint: str, graph: str | None, **limits: float) -> World:
    add_live_world(folder, "live", description(api, endpoint, graph, **limits), "bench.toml")
    return open_world(folder, "live", BENCH_ACCESS)


def _measure_real_servers(home: Path, data: Path, opened: ExitStack) -> Iterator[dict[str, Any]]:
    graphs = {"real": data / "world_2wiki" / "kg_full.ttl"}
    (home / "oxigraph").mkdir()
    (home / "mediawiki").mkdir()
    server = opened.enter_context(oxigraph.serving(graphs, home / "oxigraph"))
    pages = real_pages(data)
    world = _open_live_world(home / "graph", None, server.url, server.graph("real"))
    queries = [f"SELECT ?p ?o {{ wd:{page.item} ?p ?o }}" for page in pages[:REQUEST_COUNT] if page.item]
    yield from _measure_queries(world, server.url, server.graph("real"), queries)
    wiki = opened.enter_context(mediawiki.serving(pages, home / "mediawiki"))
    worlds = [_open_live_world(home / name, wiki.api, server.url, server.graph("real")) for name in ("first", "second")]
    yield from _measure_articles(
        worlds, home / "first" / "live" / RESPONSE_CACHE_FILE, [page.title for page in pages[:40]]
    )


def _measure_queries(world: World, url: str, graph: str, queries: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Time each query raw and through the graph source, alternating, so that the machine's load affects both."""
    source = _require_source(world.graph)
    with httpx.Client(headers={"Accept": "application/sparql-results+json"}) as client:
        prefix = "PREFIX wd: <http://www.wikidata.org/entity/> "

        def raw(query: str) -> None:
            client.get(url, params={"query": prefix + query, "default-graph-uri": graph}).json()

        pairs = [(_time_call(raw, query), _time_call(source.query, query)) for query in queries]
    yield from _overhead_results("SPARQL query", pairs[5:])
    yield _recorded_result("SPARQL query", [_time_call(source.query, query) for query in queries])


def _measure_articles(worlds: Sequence[World], record: Path, titles: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Time the raw requests of an article, and the article with its sections, tables and id.

    The first world determines the requests and makes the wiki render its pages once.
    """
    first, source = (_require_source(world.text) for world in worlds)
    pairs = []
    with (
        httpx.Client(headers={"User-Agent": BENCH_ACCESS.build_user_agent()}) as client,
        closing(sqlite3.connect(record)) as answers,
    ):

        def raw(url: str) -> None:
            client.get(url).json()

        for title in titles:
            started = time.time()
            first.article(title)
            urls = answers.execute("select url from answers where moment >= ?", (started,)).fetchall()
            pairs.append((sum(_time_call(raw, url) for (url,) in urls), _time_call(source.article, title)))
    yield from _overhead_results("article", pairs[2:])
    yield _recorded_result("article", [_time_call(source.article, title) for title in titles])


def _measure_concurrent_people(folder: Path, url: str, at_once: int) -> dict[str, Any]:
    """CONCURRENT_PEOPLE threads, each with one query to an endpoint that takes ENDPOINT_SECONDS."""
    world = _open_live_world(folder, None, url, None, at_once=at_once)
    source = _require_source(world.graph)
    queries = [f"SELECT ?x {{ wd:Q{number} wdt:P{number} ?x }}" for number in range(1, CONCURRENT_PEOPLE + 1)]
    started = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENT_PEOPLE) as threads:
        list(threads.map(source.query, queries))
    seconds = time.perf_counter() - started
    return {
        "name": "live_twenty_annotators",
        "size": f"{CONCURRENT_PEOPLE} concurrent queries, an endpoint that takes {ENDPOINT_SECONDS:g} s, "
        f"at_once = {at_once}",
        "value": round(seconds, 3),
        "unit": "s",
    }


def _require_source(source: SourceType | None) -> SourceType:
    if source is None:
        raise RuntimeError("the world lacks a source that its description names")
    return source


def _time_call(call: Callable[[str], Any], argument: str) -> float:
    started = time.perf_counter()
    call(argument)
    return time.perf_counter() - started


def _overhead_results(noun: str, pairs: Sequence[tuple[float, float]]) -> Iterator[dict[str, Any]]:
    """Quantiles of the overhead, with those of the raw requests as peer."""
    overheads = sorted(ours - raw for raw, ours in pairs)
    raw_seconds = sorted(raw for raw, _ in pairs)
    for name, quantile in (("p50", 0.5), ("p95", 0.95)):
        yield {
            "name": f"live_overhead_{name}",
            "size": f"{noun}, {len(pairs)} of them",
            "value": _quantile_ms(overheads, quantile),
            "unit": "ms",
            "peer": "the same requests by httpx",
            "peer_value": _quantile_ms(raw_seconds, quantile),
        }


def _recorded_result(noun: str, seconds: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    note = f"p95 {_quantile_ms(ordered, 0.95)} ms"
    return {
        "name": "live_recorded_answer_p50",
        "size": f"{noun}, {len(ordered)} of them",
        "value": _quantile_ms(ordered, 0.5),
        "unit": "ms",
        "note": note,
    }


def _quantile_ms(seconds: Sequence[float], quantile: float) -> float:
    return round(seconds[int((len(seconds) - 1) * quantile)] * 1000, 2)
