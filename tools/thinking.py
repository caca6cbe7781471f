"""What a reasoning model thinks aloud between marks, apart from what it says."""

import re

_MARKED = re.compile(r"<(think(?:ing)?)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Some servers put the first mark into the prompt, so that a reply has only the last one.
_CLOSED = re.compile(r"\A(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def apart(text: str) -> tuple[str, str]:
    """What was thought aloud, and what was said; thoughts without an end leave nothing said."""
    begun = _CLOSED.match(text)
    rest = text[begun.end() :] if begun else text
    thoughts = [begun[0].rpartition("</")[0]] if begun else []
    thoughts += [found[2] for found in _MARKED.finditer(rest)]
    return "\n".join(filter(None, (thought.strip() for thought in thoughts))), _MARKED.sub("", rest).strip()
