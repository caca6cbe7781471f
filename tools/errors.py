"""The failure that a tool reports in one sentence; below all else here, so that whatever tools use can raise it."""


class ToolError(Exception):
    """A tool cannot do what it was asked; the message says why and what to do next."""
