"""What calls took, in words: seconds, tokens and money; what nobody told is said to be unknown."""


def format_seconds(taken: float) -> str:
    """Seconds, milliseconds told where a hundredth says nothing."""
    if 0 < taken < 0.01:
        return f"{taken * 1000:.1f} ms"
    return f"{taken:.2f} s" if taken < 100 else f"{taken:,.0f} s"


def format_tokens(taken: int | None, given: int | None) -> str:
    """Tokens that went in and came out together."""
    return "unknown tokens" if taken is None or given is None else format_count(taken + given, "token")


def format_money(cost: float | None) -> str:
    """US dollars, as many digits as say something."""
    if cost is None:
        return "cost unknown"
    if 0 < cost < 0.0001:
        return "under $0.0001"
    return f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def format_count(count: int, noun: str) -> str:
    """The number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
