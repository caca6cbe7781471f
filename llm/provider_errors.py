"""Converts exceptions of providers' packages to ChatErrors whose messages never hold a key."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core import exceptions as langchain

from llm.errors import (
    ChatAuthenticationError,
    ChatBadRequest,
    ChatError,
    ChatInterrupted,
    ChatModelNotFound,
    ChatRateLimited,
    ChatServerError,
    ChatTimeout,
    ChatUnreachable,
)
from worlds.live.http.rate_limiter import parse_retry_after

_MAX_MESSAGE_CHARACTERS = 240
_API_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai)-[\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """The model and its address for messages, and the secrets that no message may hold."""

    model: str
    address: str
    secrets: Sequence[str] = ()


def to_chat_error(error: Exception, endpoint: ModelEndpoint) -> ChatError:
    """Convert an exception to the ChatError of its cause."""
    if isinstance(error, ChatError):
        return error
    status = _http_status(error)
    if status is not None:
        return _error_for_status(status, error, endpoint)
    if isinstance(error, langchain.ModelTimeoutError):
        return ChatTimeout(f"{endpoint.address} did not reply in time; ask for less, or try again in a minute.")
    if isinstance(error, langchain.ModelConnectionError | OSError):
        return _error_for_connection(error, endpoint)
    quoted = _server_message(error, endpoint)
    return ChatServerError(
        f"What {endpoint.address} sent is no reply of a model{quoted}; check SHOWHOW_MODEL_BASE_URL, or try again."
    )


def _http_status(error: Exception) -> int | None:
    """The HTTP status of the response, if the provider's package reports one."""
    code = getattr(error, "status_code", None)
    if isinstance(code, int):
        return code
    kinds = {
        langchain.ModelAuthenticationError: 401,
        langchain.ModelPermissionDeniedError: 403,
        langchain.ModelNotFoundError: 404,
        langchain.ModelRateLimitError: 429,
        langchain.ModelAPIError: 500,
        langchain.ContextOverflowError: 400,
        langchain.ModelInvalidRequestError: 400,
    }
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), None)


def _error_for_status(status: int, error: Exception, endpoint: ModelEndpoint) -> ChatError:
    address, quoted = endpoint.address, _server_message(error, endpoint)
    if status in (401, 403):
        return ChatAuthenticationError(
            f"{address} refuses the key ({status}); set the provider's key in the environment and start again."
        )
    if status == 404:
        return ChatModelNotFound(
            f"{address} has no model {endpoint.model} (404); check SHOWHOW_MODEL and SHOWHOW_MODEL_BASE_URL."
        )
    if status == 429:
        busy = ChatRateLimited(
            f"{address} takes no more requests just now (429){quoted}; try again in a minute.", _retry_after(error)
        )
        # An account without credit gets 429 too, and waiting does not help.
        busy.retryable = getattr(error, "code", None) != "insufficient_quota"
        return busy
    if status < 400:
        return ChatServerError(f"{address} sends requests elsewhere ({status}); correct SHOWHOW_MODEL_BASE_URL.")
    if status >= 500:
        return ChatServerError(f"{address} failed ({status}){quoted}; try again in a minute.", _retry_after(error))
    # Some reasoning models accept only their own temperature.
    what_to_do = "set SHOWHOW_MODEL_TEMPERATURE=default" if "temperature" in quoted else "ask for less, or otherwise"
    return ChatBadRequest(f"{address} does not take the request ({status}){quoted}; {what_to_do}.")


def _error_for_connection(error: Exception, endpoint: ModelEndpoint) -> ChatError:
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(type(cause).__name__)
        if isinstance(cause, ChatError):
            return cause
        cause = cause.__cause__
    if {"RemoteProtocolError", "ReadError"} & set(causes):
        return ChatInterrupted(f"The reply of {endpoint.address} broke off; try again.")
    return ChatUnreachable(
        f"{endpoint.address} does not answer; check that it runs, and SHOWHOW_MODEL_BASE_URL, or try again in a minute."
    )


def _server_message(error: Exception, endpoint: ModelEndpoint) -> str:
    """The server's message on one line and without secrets, after a colon; "" without a message."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, Mapping) else None
    text = " ".join(message.split()) if isinstance(message, str) else ""
    for secret in endpoint.secrets:
        text = text.replace(secret, "...")
    text = _API_KEY.sub("...", text)
    if len(text) > _MAX_MESSAGE_CHARACTERS:
        text = f"{text[:_MAX_MESSAGE_CHARACTERS]} ..."
    return f': "{text}"' if text else ""


def _retry_after(error: Exception) -> float | None:
    """The Retry-After header in seconds."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return parse_retry_after(headers.get("retry-after"))
