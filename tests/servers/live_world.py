"""The world.toml of a live world over servers on loopback."""

_LIMITS = {"at_once": 8, "per_minute": 1_000_000, "seconds": 60}


def description(api: str | None, endpoint: str | None, default_graph: str | None = None, **limits: float) -> str:
    """A world.toml with this wiki and this SPARQL endpoint, each optional."""
    lines = ['kind = "live"', 'title = "Servers on this machine"']
    if api is not None:
        lines += ["[text]", 'kind = "mediawiki"', f'api = "{api}"']
    if endpoint is not None:
        lines += ["[graph]", 'kind = "sparql"', f'endpoint = "{endpoint}"']
        lines += [f'default_graph = "{default_graph}"'] if default_graph else []
    lines += ["[limits]", *(f"{name} = {value}" for name, value in {**_LIMITS, **limits}.items())]
    return "\n".join(lines) + "\n"
