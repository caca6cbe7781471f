"""Providers of language models: where each takes requests, and which key belongs to it.

Nothing is left to a provider's package, which would read keys, addresses and headers from the environment: the address
and the key are passed, and `make_request_guard` holds every request to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from showhow.guard.destinations import InvalidOrigin, normalize_address, parse_origin
from showhow.llm.errors import ChatUnavailable
from showhow.llm.types import ModelProfile


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: the address that its own package has as default, and the variables that hold its key."""

    address: str
    key_variables: tuple[str, ...] = ()
    key_header: str = "authorization"


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": Provider("https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "x-api-key"),
    "google_genai": Provider(
        "https://generativelanguage.googleapis.com", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "x-goog-api-key"
    ),
    "ollama": Provider("http://127.0.0.1:11434"),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistralai": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
}
"""By the provider's name before the colon of a model; Groq and Mistral speak OpenAI's API at these addresses."""
KEY_OWNERS = {
    variable: parse_origin(provider.address).host
    for provider in PROVIDERS.values()
    for variable in provider.key_variables
}
"""The keys of providers, with the host to which each belongs."""
_PASSED_HEADERS = frozenset(
    {
        *("host", "connection", "user-agent", "accept", "accept-encoding", "content-type", "content-length"),
        *("transfer-encoding", "content-encoding", "anthropic-version", "anthropic-beta", "x-goog-api-client"),
    }
)
_PASSED_PREFIX = "x-stainless-"
NO_KEY = "none"
"""What packages and servers get in place of a key."""


def find_provider(profile: ModelProfile) -> Provider | None:
    """The provider of a model; None if its name is that of a server's own model."""
    provider, colon, _ = profile.model.partition(":")
    return PROVIDERS.get(provider) if colon else None


def find_address(profile: ModelProfile) -> str | None:
    """Where the requests of a profile go: its base URL, else the provider's address; None if neither is known."""
    provider = find_provider(profile)
    return profile.base_url or (provider.address if provider else None)


def check_address(profile: ModelProfile) -> str:
    """The address of a profile as it is connected to; ChatUnavailable if prompts must not be sent there."""
    if (address := find_address(profile)) is None:
        raise ChatUnavailable(
            f"The model {profile.model!r} of the profile {profile.name} cannot be set up: no address of its provider "
            f"is known; write it as openai:NAME with the base URL of an OpenAI-compatible server. Known without one "
            f"are {', '.join(PROVIDERS)}."
        )
    if problem := find_address_problem(address):
        raise ChatUnavailable(problem)
    return normalize_address(address)


def find_address_problem(address: str) -> str | None:
    """Why prompts are not sent to this address, in one sentence; None if they are."""
    try:
        origin = parse_origin(address)
    except InvalidOrigin as error:
        return f"The base URL {address!r} {error}; write one such as http://127.0.0.1:11434/v1."
    if not origin.is_private:
        return (
            f"The base URL {address!r} is not used, since prompts sent over http:// beyond this machine can be read on "
            "the way; use https://, or forward a port of this machine to the server."
        )
    return None


def make_request_guard(profile: ModelProfile, address: str) -> Callable[[Any], None]:
    """A request hook of httpx clients: requests go to the profile's server, with its key and no other credential."""
    provider = find_provider(profile)
    # Through OpenAI's API, every server takes the key in the same header.
    header = provider.key_header if provider and not profile.is_openai_compatible else "authorization"
    origin = parse_origin(address)
    prefix = "Bearer " if header == "authorization" else ""

    def check_request(request: Any) -> None:
        if parse_origin(str(request.url)) != origin:
            raise ChatUnavailable(f"A request for {origin} would go to {request.url.host}; nothing was sent.")
        for name in list(request.headers):
            if name not in _PASSED_HEADERS and not name.startswith(_PASSED_PREFIX):
                del request.headers[name]
        request.headers[header] = f"{prefix}{profile.api_key or NO_KEY}"

    return check_request
