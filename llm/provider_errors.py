"""Translates what a provider's package raises into a ChatError of one sentence that never holds a key."""

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
    """Who was asked, as sentences name it, and what no sentence may hold."""

    model: str
    address: str
    secrets: Sequence[str] = ()


def to_chat_error(error: Exception, asked: ModelEndpoint) -> ChatError:
    """The ChatError that says what happened."""
    if isinstance(error, ChatError):
        return error
    status = _http_status(error)
    if status is not None:
        return _error_for_status(status, error, asked)
    if isinstance(error, langchain.ModelTimeoutError):
        return ChatTimeout(f"{asked.address} did not reply in time; ask for less, or try again in a minute.")
    if isinstance(error, langchain.ModelConnectionError | OSError):
        return _error_for_connection(error, asked)
    words = _server_message(error, asked)
    return ChatServerError(
        f"What {asked.address} sent is no reply of a model{words}; check SHOWHOW_MODEL_BASE_URL, or try again."
    )


def _http_status(error: Exception) -> int | None:
    """The HTTP status that the server answered with, as far as the provider's package tells."""
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


def _error_for_status(status: int, error: Exception, asked: ModelEndpoint) -> ChatError:
    place, words = asked.address, _server_message(error, asked)
    if status in (401, 403):
        return ChatAuthenticationError(
            f"{place} refuses the key ({status}); set the provider's key in the environment and start again."
        )
    if status == 404:
        return ChatModelNotFound(
            f"{place} has no model {asked.model} (404); check SHOWHOW_MODEL and SHOWHOW_MODEL_BASE_URL."
        )
    if status == 429:
        busy = ChatRateLimited(
            f"{place} takes no more requests just now (429){words}; try again in a minute.", _retry_after(error)
        )
        # An account without money is reported so too, and waiting does not fill it.
        busy.retryable = getattr(error, "code", None) != "insufficient_quota"
        return busy
    if status < 400:
        return ChatServerError(f"{place} sends requests elsewhere ({status}); correct SHOWHOW_MODEL_BASE_URL.")
    if status >= 500:
        return ChatServerError(f"{place} failed ({status}){words}; try again in a minute.", _retry_after(error))
    # Some reasoning models take no temperature but their own.
    what_to_do = "set SHOWHOW_MODEL_TEMPERATURE=default" if "temperature" in words else "ask for less, or otherwise"
    return ChatBadRequest(f"{place} does not take the request ({status}){words}; {what_to_do}.")


def _error_for_connection(error: Exception, asked: ModelEndpoint) -> ChatError:
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(type(cause).__name__)
        if isinstance(cause, ChatError):
            return cause
        cause = cause.__cause__
    if {"RemoteProtocolError", "ReadError"} & set(causes):
        return ChatInterrupted(f"The reply of {asked.address} broke off; try again.")
    return ChatUnreachable(
        f"{asked.address} does not answer; check that it runs, and SHOWHOW_MODEL_BASE_URL, or try again in a minute."
    )


def _server_message(error: Exception, asked: ModelEndpoint) -> str:
    """What the server says about it, in one line and without secrets; "" where it says nothing."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    text = " ".join(said.split()) if isinstance(said, str) else ""
    for secret in asked.secrets:
        text = text.replace(secret, "...")
    text = _API_KEY.sub("...", text)
    if len(text) > _MAX_MESSAGE_CHARACTERS:
        text = f"{text[:_MAX_MESSAGE_CHARACTERS]} ..."
    return f': "{text}"' if text else ""


def _retry_after(error: Exception) -> float | None:
    """The seconds that the server wants to be left alone for."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return parse_retry_after(headers.get("retry-after"))
