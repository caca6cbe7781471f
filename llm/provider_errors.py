"""Converts exceptions of providers' packages to ChatErrors whose messages never hold a key.

Providers report the same failures with different statuses, codes and words; each is recognised by any of the three.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core import exceptions as langchain

from showhow.guard.proxy import HttpProxy
from showhow.guard.redaction import NOTHING_SECRET, REMOVED, Redactor
from showhow.llm.errors import (
    MAX_EQUAL_FAILURES,
    ChatAuthenticationError,
    ChatBadRequest,
    ChatContextTooLong,
    ChatError,
    ChatInterrupted,
    ChatInvalidReply,
    ChatModelNotFound,
    ChatQuotaExceeded,
    ChatRateLimited,
    ChatServerError,
    ChatTimeout,
    ChatUnreachable,
)
from showhow.llm.rate_limit_headers import parse_duration, parse_wait

_MAX_MESSAGE_CHARACTERS = 240
_WAITING_STATUSES = (408, 409, 425)
"""Statuses of servers that work, and take the request later."""
_MAX_CAUSES = 8
_API_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai)-[\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.IGNORECASE)
_QUOTA_CODES = {
    "insufficient_quota",
    "insufficient_credits",
    "insufficient_balance",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "payment_required",
}
_RATE_CODES = {"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "too_many_requests", "throttling_error"}
_OVERLOAD_CODES = {"overloaded_error", "overloaded", "api_error", "server_error", "internal_server_error", "internal"}
_OVERLOAD_CODES |= {"unavailable", "service_unavailable", "timeout_error", "deadline_exceeded", "engine_overloaded"}
_KEY_CODES = {"invalid_api_key", "authentication_error", "permission_error", "api_key_invalid", "unauthenticated"}
_CONTEXT_CODES = {
    "context_length_exceeded",
    "string_above_max_length",
    "request_too_large",
    "exceed_context_size_error",
}
_CREDIT = re.compile(
    r"credit balance|insufficient (?:credit|balance|fund|quota)|out of credits?|billing|spending limit"
    r"|payment required",
    re.IGNORECASE,
)
_WRONG_KEY = re.compile(
    r"(?:invalid|incorrect|wrong|missing)\W{1,20}(?:\w{1,40}\W{1,20})?api[ _-]?key"
    r"|api[ _-]?key (?:is )?(?:not valid|invalid|expired)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context (?:length|window|size|limit)|maximum (?:context|model|prompt|input)\w{0,20} ?len|max_model_len"
    r"|(?:prompt|input|request|messages?|conversation) (?:is |are |was )?too (?:long|large)|too many (?:input )?tokens"
    r"|tokens? (?:count )?(?:of |\(?\d+\)? )?(?:exceeds?|is greater|must be reduced)|exceeds? the (?:available|maximum)"
    r"|(?:input|prompt)\w{0,20} (?:or output )?(?:tokens?|length)[^.]{0,40}(?:exceed|must be reduced)"
    r"|reduce the length",
    re.IGNORECASE,
)
_NO_CHAT_MODEL = re.compile(r"v1/responses|not a chat model", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"\b(?:requires?|needs?) --\w|not (?:supported|implemented)|does not support"
    r"|(?:parse|compile|convert)\w{0,20} grammar|json_schema|response_format",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """The model and its address for error messages, and what removes secrets from them."""

    model: str
    address: str
    redactor: Redactor = NOTHING_SECRET
    key_variable: str = ""
    """The environment variable of the key; "" for the provider's usual one."""
    proxy: HttpProxy | None = None


@dataclass(frozen=True, slots=True)
class ServerFailure:
    """What a server says about a failed request."""

    status: int | None
    codes: frozenset[str]
    """The type, code and status words of the error, in lower case."""
    message: str
    """One line without secrets."""
    wait: float | None
    """Seconds to wait, if the server names them."""

    @property
    def quoted_message(self) -> str:
        """The message after a colon; "" without a message."""
        return f': "{self.message}"' if self.message else ""


def to_chat_error(error: Exception, endpoint: ModelEndpoint) -> ChatError:
    """Convert an exception to a ChatError by its cause."""
    causes = list(_iterate_causes(error))
    own = next((cause for cause in causes if isinstance(cause, ChatError)), None)
    if own is not None:
        return own
    failure = read_server_failure(causes, endpoint)
    if failure.status is not None or failure.codes:
        return _error_for_failure(failure, endpoint)
    return _error_for_connection(causes, endpoint) or ChatInvalidReply(
        f"What {endpoint.address} sent is no reply of a model{failure.quoted_message}; check the base URL of its "
        "profile, or try again."
    )


def _error_for_connection(causes: Sequence[BaseException], endpoint: ModelEndpoint) -> ChatError | None:
    """The error of a connection without a response or with a part of one; None if it is another one."""
    address = endpoint.address
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if {"RemoteProtocolError", "ReadError"} & names:
        return ChatInterrupted(f"The reply of {address} broke off; try again.")
    if {"ModelTimeoutError", "ReadTimeout", "WriteTimeout"} & names and "ConnectTimeout" not in names:
        return ChatTimeout(f"{address} did not reply in time; ask for less, or try again in a minute.")
    if {"ModelConnectionError", "ModelTimeoutError", "TransportError", "OSError"} & names:
        if endpoint.proxy is not None:
            return ChatUnreachable(
                f"{address} cannot be reached through the proxy {endpoint.proxy}; check SHOWHOW_PROXY, its name and "
                "password, and the base URL of the profile, or try again in a minute."
            )
        return ChatUnreachable(
            f"{address} does not answer; check that it runs, and the base URL of its profile, or try again in a minute."
        )
    return None


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def read_server_failure(causes: Sequence[BaseException], endpoint: ModelEndpoint) -> ServerFailure:
    """What the server said, from the attributes that providers' packages give their exceptions."""
    bodies = [body for cause in causes for body in _error_bodies(cause)]
    fields = [(name, value) for body in bodies for name, value in _iterate_fields(body)]
    words = [value for name, value in fields if name in ("code", "type", "status", "reason")]
    words += [getattr(cause, "code", None) for cause in causes]
    numbers = [getattr(cause, "status_code", None) for cause in causes] + words
    statuses = [int(str(value)) for value in numbers if re.fullmatch(r"[3-5]\d\d", str(value))]
    message = next((value for name, value in fields if name == "message" and isinstance(value, str)), "")
    if not message:
        message = next((value for name, value in fields if name in ("error", "detail") and isinstance(value, str)), "")
    responses = (getattr(cause, "response", None) for cause in causes)
    all_headers = (getattr(response, "headers", None) for response in responses)
    headers: Mapping[str, str] = next(filter(None, all_headers), {})
    delay = next((parse_duration(str(value)) for name, value in fields if name == "retryDelay"), None)
    return ServerFailure(
        statuses[0] if statuses else _status_of_kind(causes),
        frozenset(word.casefold() for word in words if isinstance(word, str) and not word.isdigit()),
        _to_short_line(message, endpoint.redactor),
        delay if delay is not None else parse_wait({name.lower(): value for name, value in headers.items()}, message),
    )


def _error_bodies(error: BaseException) -> Iterator[Any]:
    """The body of an error response, as the packages of OpenAI and Anthropic, Google and Ollama give it."""
    for name in ("body", "details", "error"):
        body = getattr(error, name, None)
        if isinstance(body, Mapping | list):
            yield body
        elif isinstance(body, str) and name == "error":
            yield {"message": body}
    if type(error) is ValueError and error.args and isinstance(error.args[0], Mapping):
        yield error.args[0]


def _iterate_fields(body: Any) -> Iterator[tuple[str, Any]]:
    """The fields of nested JSON objects, the outer ones first."""
    if isinstance(body, list):
        for item in body:
            yield from _iterate_fields(item)
    if isinstance(body, Mapping):
        yield from body.items()
        for value in body.values():
            yield from _iterate_fields(value)


def _status_of_kind(causes: Sequence[BaseException]) -> int | None:
    kinds = {
        langchain.ModelAuthenticationError: 401,
        langchain.ModelPermissionDeniedError: 403,
        langchain.ModelNotFoundError: 404,
        langchain.ModelRateLimitError: 429,
        langchain.ModelAPIError: 500,
        langchain.ContextOverflowError: 413,
        langchain.ModelInvalidRequestError: 400,
    }
    return next((status for cause in causes for kind, status in kinds.items() if isinstance(cause, kind)), None)


def _error_for_failure(failure: ServerFailure, endpoint: ModelEndpoint) -> ChatError:
    for convert in (_permanent_error, _transient_error):
        error = convert(failure, endpoint)
        if error is not None:
            return error
    where = f" ({failure.status})" if failure.status else ""
    if failure.status is not None and failure.status < 400:
        return ChatInvalidReply(
            f"{endpoint.address} sends requests elsewhere{where}; correct the base URL of its profile."
        )
    # Some reasoning models accept only their own temperature.
    is_temperature = "temperature" in failure.message
    what_to_do = (
        "leave the temperature of its profile empty, or set SHOWHOW_MODEL_TEMPERATURE=default"
        if is_temperature
        else "ask for less, or otherwise"
    )
    return ChatBadRequest(f"{endpoint.address} does not take the request{where}{failure.quoted_message}; {what_to_do}.")


def _permanent_error(failure: ServerFailure, endpoint: ModelEndpoint) -> ChatError | None:
    """The error of a request that can never succeed; None if it is another one."""
    address, status, codes, message = endpoint.address, failure.status, failure.codes, failure.message
    where = f" ({status})" if status else ""
    # Some providers speak of billing in messages about rate limits, which then name a time.
    if status == 402 or codes & _QUOTA_CODES or (failure.wait is None and _CREDIT.search(message)):
        return ChatQuotaExceeded(
            f"The account at {address} has no credit left{where}{failure.quoted_message}; add credit or raise its "
            "limit in the provider's billing settings."
        )
    if status == 401 or codes & _KEY_CODES or _WRONG_KEY.search(message) or status == 403:
        what_to_do = (
            f"set {endpoint.key_variable} in the environment and start again"
            if endpoint.key_variable
            else "name the environment variable of its key in its profile"
        )
        return ChatAuthenticationError(f"{address} refuses the key{where}; {what_to_do}.")
    is_too_long = bool(_TOO_LONG.search(message)) and (status is None or status < 500 or bool(codes & _CONTEXT_CODES))
    if status == 413 or codes & _CONTEXT_CODES or is_too_long:
        return ChatContextTooLong(
            f"The request is too long for {endpoint.model} at {address}{where}{failure.quoted_message}; allow fewer "
            "tokens of context, show fewer demonstrations, or use a model with a larger context."
        )
    is_no_chat_model = bool(_NO_CHAT_MODEL.search(message))
    if status == 404 or "model_not_found" in codes or is_no_chat_model:
        reason = (
            f"offers {endpoint.model} through its responses API only{where}, which is not used; choose another model."
            if is_no_chat_model
            else f"has no model {endpoint.model}{where}; check the model and the base URL of its profile."
        )
        return ChatModelNotFound(f"{address} {reason}")
    if status is not None and status >= 500 and (status == 501 or _UNSUPPORTED.search(message)):
        return ChatBadRequest(f"{address} does not take the request{where}{failure.quoted_message}; ask otherwise.")
    return None


def _transient_error(failure: ServerFailure, endpoint: ModelEndpoint) -> ChatError | None:
    """The error of a request that may succeed later; None if it is another one."""
    address, status = endpoint.address, failure.status
    where = f" ({status})" if status else ""
    if status == 429 or (status is None and failure.codes & _RATE_CODES):
        return ChatRateLimited(
            f"{address} accepts no requests now{where}{failure.quoted_message}; try again in a minute.", failure.wait
        )
    if status in _WAITING_STATUSES or (status or 0) >= 500 or failure.codes & _OVERLOAD_CODES:
        error = ChatServerError(
            f"{address} failed{where}{failure.quoted_message}; try again in a minute.", failure.wait
        )
        error.status = status
        error.max_attempts = None if status in _WAITING_STATUSES else MAX_EQUAL_FAILURES
        return error
    return None


def _to_short_line(message: str, redactor: Redactor) -> str:
    """The message on one line, without secrets and without what looks like the key of somebody else; truncated."""
    text = _API_KEY.sub(REMOVED, redactor.redact(" ".join(message.split())))
    return text if len(text) <= _MAX_MESSAGE_CHARACTERS else f"{text[:_MAX_MESSAGE_CHARACTERS]} ..."
