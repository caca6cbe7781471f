"""Waiting times and budgets as servers write them."""

from datetime import UTC, datetime, timedelta

import pytest

from showhow.llm.rate_limit_headers import parse_budgets, parse_duration, parse_wait


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.9s", 1.9),
        ("6m0s", 360),
        ("500ms", 0.5),
        ("1h2m3s", 3723),
        ("2 minutes and 5 seconds", 125),
        ("34.074824224s", 34.074824224),
        ("7", 7),
        ("0", 0),
        ("2024", 2024),
        ("soon", None),
        ("", None),
        ("-1", None),
        ("5 apples", None),
        ("nan", None),
    ],
)
def test_a_duration_is_read_in_all_its_forms(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 0.25),
        ({"retry-after": "3"}, "try again in 9s", 3),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"llm_provider-retry-after": "2"}, "", 2),
        ({"retry-after": "1", "upstream-retry-after": "2"}, "", 1),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, "", 0),
        ({}, "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 1.9s.", 1.9),
        ({}, "Please retry after 6 seconds.", 6),
        ({}, "Please wait 30 seconds before the next request", 30),
        ({}, "Quota exceeded. Please retry in 34.07s.", 34.07),
        ({}, "Please try again in 6m0s. Need more tokens?", 360),
        ({}, "try again in 20ms", 0.02),
        ({}, "rate limited; retry-after: 12", 12),
        ({}, "Try again in 1 minute", 60),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "4s"}, "", 4),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "4s"}, "", None),
        ({}, "Your limit is 500 requests per minute. Try again later.", None),
        ({}, "try again; used 12 s of compute", None),
        ({}, "", None),
    ],
)  # fmt: skip
def test_the_waiting_time_of_an_error_is_read_from_headers_and_message(
    headers: dict[str, str], message: str, seconds: float | None
) -> None:
    assert parse_wait(headers, message) == (None if seconds is None else pytest.approx(seconds))


def test_budgets_are_read_from_the_headers_of_all_providers() -> None:
    moment = (datetime.now(UTC) + timedelta(seconds=20)).isoformat()
    openai = {
        "X-RateLimit-Limit-Requests": "60",
        "X-RateLimit-Remaining-Requests": "59",
        "X-RateLimit-Reset-Requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert [(b.counts_tokens, b.remaining, b.reset_seconds) for b in parse_budgets(openai)] == [
        (False, 59, 1),
        (True, 149984, 360),
    ]
    anthropic = {"anthropic-ratelimit-requests-remaining": "4", "anthropic-ratelimit-requests-reset": moment}
    (budget,) = parse_budgets(anthropic)
    assert (budget.counts_tokens, budget.remaining) == (False, 4)
    assert budget.reset_seconds == pytest.approx(20, abs=2)
    epoch = str(int((datetime.now(UTC) + timedelta(seconds=9)).timestamp() * 1000))
    (budget,) = parse_budgets({"x-ratelimit-remaining": "2", "x-ratelimit-reset": epoch})
    assert budget.reset_seconds == pytest.approx(9, abs=2)
    (budget,) = parse_budgets({"x-ratelimit-limit-minute": "60", "x-ratelimit-remaining-minute": "1"})
    assert (budget.remaining, budget.reset_seconds) == (1, 60)
    assert parse_budgets({"x-ratelimit-remaining": "many", "x-ratelimit-reset": "1", "ratelimit-policy": "x"}) == []
