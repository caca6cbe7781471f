"""Of which kind the failure of a call was, told from the sentence that its step keeps.

refused query     it is not run: no SELECT or ASK, too long, leaves the world
not found         there is no such article, page, entity or relation
wrong arguments   the tool cannot be called so
model             the language model behind the tool gave no reply
time limit        it was stopped, or nobody answered in time
unavailable       the source, the server or the tool is gone, broken or not set up
other             whatever else a tool of others says

A step keeps one sentence only, and those of imported traces were written elsewhere; so the beginnings and turns of our
sentences are the rule, and its test holds them against every sentence that the tools and the worlds can raise.
"""

import re

OTHER_KIND = "other"
_PATTERNS_BY_KIND = {
    "refused query": (
        r"^The query (?:is|has|holds|would|calls|gives) ",
        r"^SERVICE |^Only SELECT and ASK are answered",
        r"^\S+ takes no query as long ",
    ),
    "not found": (
        r"^There is no (?:article|page) ",
        r"^Nothing in this world is called ",
        r"^This world knows none of ",
        r"^This world(?:'s graph)? does not know ",
        r"^No (?:entity|word) of ",
        r"^The question names no relation ",
        r" may mean several things; name ",
    ),
    "wrong arguments": (r"^\S+ cannot run: ", r"^\S+ needs (?:at least|a SPARQL) ", r" is no entity id; "),
    "model": (
        r"SHOWHOW_MODEL|language model|^The model |no reply\b",
        r"refuses the key |has no model |takes no more requests |does not take the request |failed \(\d+\)",
        r"^The reply of |did not reply in time|did not finish its reply|used up its tokens|an empty message",
    ),
    "time limit": (
        r"limit of (?:time|[\d.,e+-]+ (?:s|MB))\b",
        r"did not answer within |kept the graph busy for |places there were taken by other questions",
    ),
    "unavailable": (
        r"cannot be (?:opened|read|written|loaded)|^The (?:record|header|server|tool) |^The process .* has died",
        r"could not answer|times in a row|has no such address|does not let us ask",
        r" answered (?:in|with|something|\d+)\b",
        r"^\S+ (?:refused \(|redirects (?:to|more than) |sends more than |is busy \()|ha[sd] not been asked this ",
        r"broke off after |^Live sources are not asked |^Nothing is fetched from |^There is no (?:graph|world|tool) ",
        r"and the world .* has none|; try again .{1,20}\.$| leads from https to an open",
    ),
}
ERROR_KINDS = (*_PATTERNS_BY_KIND, OTHER_KIND)
_COMPILED_PATTERNS = {kind: re.compile("|".join(turns)) for kind, turns in _PATTERNS_BY_KIND.items()}


def classify_error(error: str) -> str:
    """One of KINDS."""
    return next((kind for kind, told in _COMPILED_PATTERNS.items() if told.search(error)), OTHER_KIND)
