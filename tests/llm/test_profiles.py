"""Profiles are checked, stored without keys for their owner only, and completed with what is known of their models."""

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from showhow.llm.profiles import (
    DEFAULT_CONTEXT_WINDOW,
    PRESETS,
    KnownLimits,
    ProfileError,
    ProfileFile,
    find_known_limits,
    find_problems,
    list_changes,
    profile_from_json,
    profile_to_json,
    with_known_limits,
)
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice

FULL = ModelProfile(
    "openai:Qwen/Qwen3-8B",
    "http://127.0.0.1:8000/v1",
    seconds=30.0,
    temperature=0.2,
    price=TokenPrice(0.1, 0.4, cached=0.05),
    reply_limit=2_000,
    requests_per_minute=90.5,
    key_variable="LOCAL_API_KEY",
    name="local",
    reasoning_effort="low",
    context_window=32_000,
    tokens_per_minute=100_000,
    concurrency=4,
    extra_body={"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}},
)


@pytest.fixture
def profiles(tmp_path: Path) -> ProfileFile:
    return ProfileFile(tmp_path / "home" / "models.json")


def test_profiles_are_stored_in_order_and_readable_by_their_owner_only(profiles: ProfileFile):
    assert profiles.load() == {}
    profiles.save(FULL)
    profiles.save(ModelProfile("openai:gpt-5-mini", name="mini"))
    assert list(profiles.load().values()) == [FULL, ModelProfile("openai:gpt-5-mini", name="mini")]
    assert stat.S_IMODE(profiles.path.stat().st_mode) == 0o600
    renamed = replace(FULL, name="renamed", temperature=None)
    profiles.save(renamed, replaces=FULL)
    assert list(profiles.load()) == ["renamed", "mini"]
    profiles.remove(renamed)
    assert list(profiles.load()) == ["mini"]
    assert sorted(path.name for path in profiles.path.parent.iterdir()) == ["models.json", "models.lock"]


def test_a_key_is_never_stored(profiles: ProfileFile):
    profiles.save(replace(FULL, api_key="sk-planted-5512"))
    assert "sk-planted" not in profiles.path.read_text(encoding="utf-8")
    assert "sk-planted" not in repr(replace(FULL, api_key="sk-planted-5512"))


def test_a_change_made_meanwhile_is_not_overwritten(profiles: ProfileFile):
    profiles.save(FULL)
    profiles.save(replace(FULL, concurrency=2), replaces=FULL)
    with pytest.raises(ProfileError, match="'local' was changed meanwhile"):
        profiles.save(replace(FULL, concurrency=3), replaces=FULL)
    with pytest.raises(ProfileError, match="'local' was changed meanwhile"):
        profiles.remove(FULL)
    profiles.remove(replace(FULL, concurrency=2))
    with pytest.raises(ProfileError, match="'local' was removed meanwhile"):
        profiles.save(replace(FULL, concurrency=3), replaces=FULL)
    profiles.save(FULL)
    with pytest.raises(ProfileError, match="already a profile 'local'"):
        profiles.save(FULL)


def test_threads_that_save_at_once_lose_no_profile(profiles: ProfileFile):
    names = [f"model-{number}" for number in range(12)]
    threads = [threading.Thread(target=profiles.save, args=[replace(FULL, name=name)]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(profiles.load()) == sorted(names)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"name": "default"}, "name", "that of the environment's settings"),
        ({"name": ""}, "name", "write 1 to 40 letters"),
        ({"name": "über"}, "name", "write 1 to 40 letters"),
        ({"model": ""}, "model", "provider:model"),
        ({"model": "gpt-5", "base_url": None, "extra_body": {}}, "model", "provider:model"),
        ({"model": "openai:gpt 5"}, "model", "without spaces"),
        ({"base_url": "127.0.0.1:8000"}, "base_url", "is no address"),
        ({"base_url": "http://[::1"}, "base_url", "is no address"),
        ({"base_url": "http://user:pass@host/v1"}, "base_url", "a user, a password or a query"),
        ({"base_url": "http://host/v1/chat/completions"}, "base_url", "write the address before it"),
        ({"key_variable": "sk-proj-1234"}, "key_variable", "never the key itself"),
        # Whoever edits profiles must not be able to send other secrets of the server's anywhere.
        ({"key_variable": "AWS_SECRET_ACCESS_KEY"}, "key_variable", "ends with _API_KEY"),
        ({"base_url": "http://models.example/v1"}, "base_url", "over http:// beyond this machine"),
        ({"base_url": "http://127.0.0.1.evil.example/v1"}, "base_url", "over http:// beyond this machine"),
        ({"reply_limit": 32_000}, "reply_limit", "must be smaller"),
        ({"extra_body": {"messages": []}}, "extra_body", "'messages', which Showhow sends itself"),
        ({"extra_body": {"a": float("nan")}}, "extra_body", "JSON cannot express"),
        ({"extra_body": {"a": "b" * 10_001}}, "extra_body", "write at most 10,000"),
        ({"model": "anthropic:claude-sonnet-4-5"}, "extra_body", "OpenAI-compatible servers only"),
        ({"extra_body": {"header": "planted-secret"}}, "extra_body", "contains a key of the environment"),
        ({"base_url": "https://host/planted-secret"}, "base_url", "contains a key of the environment"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_sentence(changes: dict[str, Any], field: str, message: str):
    problems = find_problems(replace(FULL, **changes), ("planted-secret",))
    assert list(problems) == [field]
    assert message in problems[field]
    assert problems[field].endswith(".")
    assert "sk-proj" not in problems[field]


def test_a_stored_profile_over_http_leaves_the_others_usable(profiles: ProfileFile):
    profiles.path.parent.mkdir()
    stored = {"lan": {"model": "openai:a", "base_url": "http://10.0.0.7:8000/v1"}, "mini": {"model": "openai:b"}}
    profiles.path.write_text(json.dumps({"profiles": stored}), encoding="utf-8")
    assert list(profiles.load()) == ["lan", "mini"]
    with pytest.raises(ProfileError, match="beyond this machine"):
        profiles.save(replace(profiles.load()["lan"], name="other"))


def test_a_profile_that_cannot_be_used_is_not_stored(profiles: ProfileFile):
    with pytest.raises(ProfileError, match="is no address"):
        profiles.save(replace(FULL, base_url="localhost"))
    assert not profiles.path.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", 'no object "profiles"'),
        ('{"profiles": {"a": 1}}', 'no object "profiles"'),
        ('{"profiles": {"a": {}}}', "the model is missing"),
        ('{"profiles": {"a": {"model": "openai:x", "key": "k"}}}', "there is no field 'key'"),
        ('{"profiles": {"a": {"model": "openai:x", "temperature": "hot"}}}', 'Temperature is "hot"; write a number'),
        ('{"profiles": {"a": {"model": "openai:x", "price": {"input": 1}}}}', "write an object with input and output"),
        ('{"profiles": {"a": {"model": "openai:x", "concurrency": true}}}', "write a whole number above 0"),
        ('{"profiles": {"a": {"model": "openai:x", "reasoning_effort": "huge"}}}', "one of none, minimal"),
        ('{"profiles": {"a": {"model": "x"}}}', "The profile 'a' cannot be used: The model is 'x'"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(profiles: ProfileFile, text: str, message: str):
    profiles.path.parent.mkdir()
    profiles.path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as error:
        profiles.load()
    assert message in str(error.value)


def test_a_profile_survives_json():
    written = json.loads(json.dumps(profile_to_json(FULL)))
    assert profile_from_json("local", written) == FULL


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_can_be_saved(profiles: ProfileFile, preset: Any):
    profiles.save(preset.profile)


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-mini", "o3"])
def test_limits_are_those_of_langchain(model: str):
    known = ChatOpenAI(model=model, api_key="none").profile  # type: ignore[arg-type]
    assert known is not None
    assert find_known_limits(f"openai:{model}") == KnownLimits(known["max_input_tokens"], known["max_output_tokens"])
    assert find_known_limits(f"openai:{model}-2025-08-07") == find_known_limits(f"openai:{model}")


def test_limits_of_models_of_other_providers_are_known_where_their_package_is_installed():
    assert (find_known_limits("anthropic:claude-sonnet-4-5").context_window or 0) >= 200_000
    assert find_known_limits("nosuch:model") == KnownLimits()
    assert find_known_limits("../evil:model") == KnownLimits()


@pytest.mark.parametrize(
    ("profile", "window", "reply_limit"),
    [
        (ModelProfile("openai:gpt-4.1"), 1_047_576, 8_192),
        (ModelProfile("openai:unknown"), DEFAULT_CONTEXT_WINDOW, 4_000),
        (ModelProfile("openai:unknown", context_window=4_096), 4_096, 1_024),
        (ModelProfile("openai:gpt-4.1", context_window=20_000, reply_limit=500), 20_000, 500),
    ],
)
def test_a_profile_is_completed_with_its_limits(profile: ModelProfile, window: int, reply_limit: int):
    completed = with_known_limits(profile)
    assert (completed.context_window, completed.reply_limit) == (window, reply_limit)


def test_changes_are_those_that_determine_replies():
    same = replace(FULL, price=None, concurrency=None, requests_per_minute=None, key_variable=None, seconds=1.0)
    assert list_changes(profile_to_json(FULL), profile_to_json(same)) == []
    changed = replace(FULL, temperature=None, extra_body={}, reasoning_effort="high")
    assert list_changes(profile_to_json(FULL), profile_to_json(changed)) == [
        "temperature was 0.2 and is not set",
        'reasoning effort was "low" and is "high"',
        'extra body was {"top_k": 20, "chat_template_kwargs": {"enable_thinking": false}} and is not set',
    ]
