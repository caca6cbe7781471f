"""Every fault of every server becomes one sentence in its step, and the trace continues."""

from pathlib import Path

import pytest

from tests.fixtures.harbour import no_meaning
from tests.servers.fault_sweep import GRAPH_CALLS, MODEL_CALLS, TEXT_CALLS, SourceServers, sweep_fault
from tests.servers.faults import FAULTS
from tests.servers.mediawiki import MediaWiki
from tests.servers.model import ModelServer, Says
from tests.servers.sparql import SparqlServer

pytestmark = pytest.mark.long

SENTENCES = {
    "429 with Retry-After": "429",
    "500": "500",
    "503": "503",
    "no answer": "did not answer within",
    "a slow trickle": "did not answer within",
    "50 MB of answer": "more than 10 MB",
    "a stream for ever": "more than 10 MB",
    "a wrong content type": "text/html instead of application/",
    "a page to sign in under status 200": "text/html instead of application/",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_every_source_is_one_sentence_and_no_step_is_lost(
    fault: str, mediawiki: MediaWiki, oxigraph: SparqlServer, virtuoso: SparqlServer, tmp_path: Path
):
    endpoints = {"oxigraph": (oxigraph.url, oxigraph.graph("real")), "virtuoso": (virtuoso.url, virtuoso.graph("real"))}
    with ModelServer(lambda _: Says('{"answer": "Tony Giglio", "quotes": []}')) as model:
        outcomes = sweep_fault(fault, SourceServers(mediawiki.api, endpoints, model.url), tmp_path, 3, no_meaning)
    assert [outcome for outcome in outcomes if outcome.problem] == [], [
        (one.source, one.tool, one.problem) for one in outcomes
    ]
    assert len(outcomes) == len(TEXT_CALLS) + 2 * len(GRAPH_CALLS) + len(MODEL_CALLS)
    phrase = SENTENCES.get(fault, "")
    assert [outcome for outcome in outcomes if phrase not in outcome.message and outcome.source != "model"] == []
