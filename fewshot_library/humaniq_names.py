"""The names of tools in HumanIQ's files and here."""

SHOWHOW_TOOL_NAMES = {
    "WikiSearch": "wikisearch",
    "WikiSearchSummary": "wikisearch",
    "GetWikidataID": "getWikiDataID",
    "GenerateSparql": "generateQuery",
    "RunSparql": "runQuery",
    "GetLabel": "getLabel",
}
# If HumanIQ has two names for a tool, the first is written.
HUMANIQ_TOOL_NAMES = {showhow: humaniq for humaniq, showhow in reversed(SHOWHOW_TOOL_NAMES.items())}


def action_symbol(tool: str, imported: str | None) -> str:
    """The symbol of a call in a sequence of actions: HumanIQ's second name for a tool is a symbol of its own."""
    return tool if imported in (None, HUMANIQ_TOOL_NAMES.get(tool, tool)) else imported
