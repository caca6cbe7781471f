"""Operators of hosts: the sites of the Wikimedia Foundation are limited together, for each user; others by host."""

WIKIMEDIA = "wikimedia.org"
_WIKIMEDIA_DOMAINS = (
    "wikipedia.org",
    "wikidata.org",
    "wikimedia.org",
    "wiktionary.org",
    "wikibooks.org",
    "wikinews.org",
    "wikiquote.org",
    "wikisource.org",
    "wikiversity.org",
    "wikivoyage.org",
    "wikifunctions.org",
    "mediawiki.org",
)


def find_operator(host: str) -> str:
    """Who limits the requests to a host: WIKIMEDIA for all of its sites together, else the host itself."""
    name = host.partition(":")[0]
    is_wikimedia = any(name == domain or name.endswith(f".{domain}") for domain in _WIKIMEDIA_DOMAINS)
    return WIKIMEDIA if is_wikimedia else host
