"""A scripted model that answers "Who is number N?": after a search if it has tools, at once without; some wrongly."""

from tests.servers.model import Reply, Request, Says


def number_in(request: Request) -> int:
    """The number in the last question of the prompt."""
    return int(request.prompt.rpartition("Who is number ")[2].partition("?")[0])


def pupil(request: Request, *, wrong: frozenset[int] = frozenset(), taught_by: int = -1, latency: float = 0.0) -> Reply:
    """Answer the question; those in `wrong` are right only if the prompt has the demonstration `taught_by`."""
    number = number_in(request)
    knows = number not in wrong or (number != taught_by and f"Who is number {taught_by}?" in request.prompt)
    answer = f"Answer {number}" if knows else f"Nobody {number}"
    if not request.tools:
        # The final response rests on what the steps have observed.
        observed = f"Answer {number}"
        return Says(f"Answer: {observed if observed in request.prompt else answer}", latency=latency)
    if request.body["messages"][-1]["role"] != "tool":
        return Says("I look.", calls=[("wikisearch", {"query": f"number {number}"})], latency=latency)
    return Says(f"Final Answer: {answer}\nText says: {answer}", latency=latency)
