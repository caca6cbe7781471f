"""LangChain's chat models of a profile, each built with its address, its key and an HTTP client of ours.

A package that is not told something looks for it in the environment, in .netrc, or in a proxy's settings.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import httpx2
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from showhow.guard.proxy import choose_proxy
from showhow.llm.openai_compatible import CompatibleChatOpenAI, PassthroughCompletions, make_http_client, ssl_context
from showhow.llm.providers import NO_KEY, make_request_guard
from showhow.llm.types import ModelProfile

_CONNECT_SECONDS = 10.0


def build_model(profile: ModelProfile, address: str) -> BaseChatModel:
    """The model of a profile at this address; ImportError if its package is missing, ValueError for a wrong option."""
    build = _build_openai_model if profile.is_openai_compatible else _NATIVE_MODELS[profile.model.partition(":")[0]]
    return build(profile, address)


def _model_options(profile: ModelProfile) -> dict[str, Any]:
    """The options of a model, under the names that LangChain's packages share."""
    options: dict[str, Any] = {"timeout": profile.seconds, "max_retries": 0}
    if profile.temperature is not None:
        options["temperature"] = profile.temperature
    if profile.reply_limit is not None:
        options["max_tokens"] = profile.reply_limit
    if profile.reasoning_effort is not None:
        options["reasoning_effort"] = profile.reasoning_effort
    # A package that gets no key would look for one in the environment.
    options["api_key"] = SecretStr(profile.api_key or NO_KEY)
    return options


def _client_options(profile: ModelProfile, address: str) -> dict[str, Any]:
    """What the HTTP clients of all packages get: our proxy and guard, nothing of the environment, no redirect."""
    guard = make_request_guard(profile, address)
    return {
        "trust_env": False,
        "proxy": proxy.url if (proxy := choose_proxy(profile.proxy, address)) else None,
        "follow_redirects": False,
        "verify": ssl_context(),
        "event_hooks": {"request": [guard]},
    }


def _build_anthropic_model(profile: ModelProfile, address: str) -> BaseChatModel:
    options = {**_model_options(profile), "base_url": address, "anthropic_proxy": None}
    return _anthropic_class()(model=_own_name(profile), http_client=make_http_client(profile, address), **options)


@cache
def _anthropic_class() -> Callable[..., BaseChatModel]:
    """ChatAnthropic with an HTTP client of ours; its own follows redirects with the key."""
    import anthropic  # noqa: PLC0415 - an extra
    from langchain_anthropic import ChatAnthropic  # noqa: PLC0415 - an extra

    class GuardedChatAnthropic(ChatAnthropic):
        http_client: Any = None

        @cached_property
        def _client(self) -> anthropic.Client:
            return anthropic.Client(**self._client_params, http_client=self.http_client)

    return GuardedChatAnthropic


def _build_google_model(profile: ModelProfile, address: str) -> BaseChatModel:
    from langchain_google_genai import ChatGoogleGenerativeAI  # noqa: PLC0415 - an extra

    options = {**_model_options(profile), "base_url": address, "client_args": _client_options(profile, address)}
    return ChatGoogleGenerativeAI(model=_own_name(profile), vertexai=False, **options)


def _build_ollama_model(profile: ModelProfile, address: str) -> BaseChatModel:
    # The package has other names for these options.
    options, client_options = _model_options(profile), _client_options(profile, address)
    client_options["timeout"], limit = options.pop("timeout"), options.pop("max_tokens", None)
    options = {name: value for name, value in options.items() if name not in ("max_retries", "api_key")}
    effort, window = options.pop("reasoning_effort", None), profile.context_window
    options |= {"client_kwargs": client_options} | ({} if limit is None else {"num_predict": limit})
    # Without a window Ollama loads the model with a small one, and silently drops the beginning of the prompt.
    options |= ({} if window is None else {"num_ctx": window}) | ({} if effort is None else {"reasoning": effort})
    return _ollama_class()(model=_own_name(profile), base_url=address, **options)


def _own_name(profile: ModelProfile) -> str:
    """The model's name without its provider."""
    return profile.model.partition(":")[2]


@cache
def _ollama_class() -> Callable[..., BaseChatModel]:
    """ChatOllama that keeps the thoughts of models that think by default, and asks no other model to think."""
    from langchain_ollama import ChatOllama  # noqa: PLC0415 - an extra

    class ThinkingChatOllama(ChatOllama):
        reasoning: bool | str | None = True

        def _chat_params(
            self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
        ) -> dict[str, Any]:
            effort = self.reasoning if isinstance(self.reasoning, str) else None
            return {**super()._chat_params(messages, stop, **kwargs), "think": effort}

    return ThinkingChatOllama


def _build_openai_model(profile: ModelProfile, address: str) -> BaseChatModel:
    """The model of OpenAI, or of a server that speaks its API."""
    options = _model_options(profile)
    options["timeout"] = httpx2.Timeout(profile.seconds, connect=min(_CONNECT_SECONDS, profile.seconds))
    # LangChain would ask some models through the responses API, whose replies end in other ways.
    options |= {"stream_usage": True, "use_responses_api": False, "base_url": address, "openai_proxy": None}
    options["http_client"] = make_http_client(profile, address)
    extra_body = dict(profile.extra_body)
    is_openai = profile.base_url is None and profile.model.startswith("openai:")
    if "max_tokens" in options and not is_openai:
        # LangChain would send max_completion_tokens, which other servers ignore.
        extra_body["max_tokens"] = options.pop("max_tokens")
    if extra_body:
        options["extra_body"] = extra_body
    # A server at a base URL may have models with a colon in their names.
    name = _own_name(profile) if profile.base_url is None else profile.model.removeprefix("openai:")
    model = CompatibleChatOpenAI(model=name, **options)
    model.client = PassthroughCompletions(model.client)
    return model


_NATIVE_MODELS: dict[str, Callable[[ModelProfile, str], BaseChatModel]] = {
    "anthropic": _build_anthropic_model,
    "google_genai": _build_google_model,
    "ollama": _build_ollama_model,
}
"""The models of NATIVE_PROVIDERS, through their own packages, which are extras."""
