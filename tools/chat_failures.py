"""What a provider's package raises, told as a ChatError: one sentence that never holds a key."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core import exceptions as langchain

from tools import chat_errors as errors
from worlds.live.retry_after import retry_after

_LONGEST_WORDS = 240
_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai)-[\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked, as sentences name it, and what no sentence may hold."""

    model: str
    place: str
    secrets: Sequence[str] = ()


def told(error: Exception, asked: Asked) -> errors.ChatError:
    """The ChatError that says what happened."""
    if isinstance(error, errors.ChatError):
        return error
    status = _status(error)
    if status is not None:
        return _of_status(status, error, asked)
    if isinstance(error, langchain.ModelTimeoutError):
        return errors.ChatTimeout(f"{asked.place} did not reply in time; ask for less, or try again in a minute.")
    if isinstance(error, langchain.ModelConnectionError | OSError):
        return _of_connection(error, asked)
    words = _words(error, asked)
    return errors.ChatBroken(
        f"What {asked.place} sent is no reply of a model{words}; check SHOWHOW_MODEL_BASE_URL, or try again."
    )


def _status(error: Exception) -> int | None:
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


def _of_status(status: int, error: Exception, asked: Asked) -> errors.ChatError:
    place, words = asked.place, _words(error, asked)
    if status in (401, 403):
        return errors.ChatKeyRefused(
            f"{place} refuses the key ({status}); set the provider's key in the environment and start again."
        )
    if status == 404:
        return errors.ChatUnknownModel(
            f"{place} has no model {asked.model} (404); check SHOWHOW_MODEL and SHOWHOW_MODEL_BASE_URL."
        )
    if status == 429:
        busy = errors.ChatBusy(
            f"{place} takes no more requests just now (429){words}; try again in a minute.", _retry_after(error)
        )
        # An account without money is reported so too, and waiting does not fill it.
        busy.again = getattr(error, "code", None) != "insufficient_quota"
        return busy
    if status < 400:
        return errors.ChatBroken(f"{place} sends requests elsewhere ({status}); correct SHOWHOW_MODEL_BASE_URL.")
    if status >= 500:
        return errors.ChatBroken(f"{place} failed ({status}){words}; try again in a minute.", _retry_after(error))
    # Some reasoning models take no temperature but their own.
    what_to_do = "set SHOWHOW_MODEL_TEMPERATURE=default" if "temperature" in words else "ask for less, or otherwise"
    return errors.ChatRejected(f"{place} does not take the request ({status}){words}; {what_to_do}.")


def _of_connection(error: Exception, asked: Asked) -> errors.ChatError:
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(type(cause).__name__)
        if isinstance(cause, errors.ChatError):
            return cause
        cause = cause.__cause__
    if {"RemoteProtocolError", "ReadError"} & set(causes):
        return errors.ChatCut(f"The reply of {asked.place} broke off; try again.")
    return errors.ChatUnreachable(
        f"{asked.place} does not answer; check that it runs, and SHOWHOW_MODEL_BASE_URL, or try again in a minute."
    )


def _words(error: Exception, asked: Asked) -> str:
    """What the server says about it, in one line and without secrets; "" where it says nothing."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    text = " ".join(said.split()) if isinstance(said, str) else ""
    for secret in asked.secrets:
        text = text.replace(secret, "...")
    text = _KEY.sub("...", text)
    if len(text) > _LONGEST_WORDS:
        text = f"{text[:_LONGEST_WORDS]} ..."
    return f': "{text}"' if text else ""


def _retry_after(error: Exception) -> float | None:
    """The seconds that the server wants to be left alone for."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return retry_after(headers.get("retry-after"))
