"""The rule for names that become names of folders and files: those of worlds and of libraries."""

import re
from collections.abc import Iterable

NAME_RULE = "use up to 64 letters, digits, - and _, beginning with a letter or digit"
_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}
)
"""Names of devices on Windows, in any case; a folder cannot be called so."""
_ALIKE_CHARACTERS = str.maketrans({"0": "O", "1": "l", "I": "l", "m": "rn"})
_SHOWN_CHARACTERS = 80


def is_safe_name(name: str) -> bool:
    """Whether the name is of characters that every system takes in the name of a folder."""
    return _NAME_PATTERN.fullmatch(name) is not None


def explain_refused_name(name: str, existing: Iterable[str]) -> str | None:
    """The reason why nothing new may have this name, as a clause; None if it may.

    Refused are unsafe and reserved names, and names that are easily taken for another of the `existing` ones: that
    differ only in case, which is one folder on some systems, or in characters that look alike. An existing name itself
    is not refused.
    """
    if not is_safe_name(name):
        near = "-".join(re.findall(r"[A-Za-z0-9_-]+", name)).lstrip("-_")
        return f"{NAME_RULE}, such as {near}" if is_safe_name(near) else NAME_RULE
    if name.casefold() in _DEVICES:
        return "Windows reserves this name for a device; choose another name"
    others = sorted(existing)
    if name in others:
        return None
    alike = next((other for other in others if _looks_like(name, other)), None)
    return f"it is easily taken for {alike!r}; choose another name" if alike is not None else None


def shorten_name(name: str) -> str:
    """The name in quotation marks for a message, shortened if it is long."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}…")


def _looks_like(name: str, other: str) -> bool:
    return name.casefold() == other.casefold() or _outline(name) == _outline(other)


def _outline(name: str) -> str:
    """The name with one character for all that look the same: 0 and O, 1 and l and I, m and rn."""
    return name.translate(_ALIKE_CHARACTERS).casefold()
