import pytest

from showhow.llm.types import FinishReason, parse_finish_reason


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (FinishReason.STOP, "stop STOP end_turn stop_sequence COMPLETE eos eos_token stop_token completed"),
        (FinishReason.TOOL_CALLS, "tool_calls tool_use function_call TOOL_CALL"),
        (
            FinishReason.LENGTH,
            "length max_tokens MAX_TOKENS max_output_tokens model_length model_context_window_exceeded",
        ),
        (
            FinishReason.FILTERED,
            "content_filter refusal SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY LANGUAGE "
            "content_filtered guardrail_intervened sensitive",
        ),
        (
            FinishReason.INTERRUPTED,
            "error OTHER FINISH_REASON_UNSPECIFIED MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
            "load pause_turn insufficient_system_resource network_error abort",
        ),
    ],
)
def test_the_reasons_of_all_providers_are_of_five_kinds(kind: FinishReason, reasons: str) -> None:
    assert {reason: parse_finish_reason(reason) for reason in reasons.split()} == dict.fromkeys(reasons.split(), kind)
