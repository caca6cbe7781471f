"""A scripted model that answers "Who is number N?": after a search with tools, at once without; some wrongly."""

from tests.servers.model import Reply, Request, Says


def number_in(request: Request) -> int:
    """Which question is asked, by the last one that the prompt names."""
    return int(request.prompt.rpartition("Who is number ")[2].partition("?")[0])


def pupil(request: Request, *, wrong: frozenset[int] = frozenset(), taught_by: int = -1, latency: float = 0.0) -> Reply:
    """Its reply; what it gets wrong it knows once it was shown how another one of these questions is answered."""
    number = number_in(request)
    knows = number not in wrong or (number != taught_by and f"Who is number {taught_by}?" in request.prompt)
    said = f"Answer {number}" if knows else f"Nobody {number}"
    if not request.tools:
        # The final response rests on what the steps have found.
        found = f"Answer {number}"
        return Says(f"Answer: {found if found in request.prompt else said}", latency=latency)
    if request.body["messages"][-1]["role"] != "tool":
        return Says("I look.", calls=[("wikisearch", {"query": f"number {number}"})], latency=latency)
    return Says(f"Final Answer: {said}\nText says: {said}", latency=latency)
