from datetime import UTC, datetime
from pathlib import Path

import pytest

from showhow.settings import DEFAULT_ENCODER, Settings, SettingsError


def test_without_an_environment_everything_has_a_default():
    found = Settings.from_env({})
    assert found.home.is_absolute()
    assert found.database_url == f"sqlite:///{found.home / 'showhow.db'}"
    assert found.encoder == DEFAULT_ENCODER
    assert found.model is None


def test_the_environment_wins_over_the_file_and_empty_means_unset(tmp_path: Path):
    dotenv = tmp_path / ".env"
    dotenv.write_text("SHOWHOW_HOME=/from/file\nSHOWHOW_MODEL=openai:small\nSHOWHOW_CONTACT=ada@example.org\n")
    found = Settings.from_env({"SHOWHOW_HOME": str(tmp_path), "SHOWHOW_CONTACT": ""}, dotenv)
    assert found.home == tmp_path.resolve()
    assert found.model == "openai:small"
    assert found.contact == "ada@example.org"
    assert found.worlds_folder == tmp_path.resolve() / "worlds"


def test_files_of_the_server_are_offered_only_where_a_folder_is_named(tmp_path: Path):
    assert Settings.from_env({}).import_folder is None
    assert Settings.from_env({"SHOWHOW_IMPORT_FOLDER": f"{tmp_path}/x/.."}).import_folder == tmp_path.resolve()


def test_keys_of_providers_are_no_part_of_the_settings():
    found = Settings.from_env({"OPENAI_API_KEY": "secret-1", "SHOWHOW_HOME": "/tmp"})  # noqa: S108 - never touched
    assert "secret-1" not in repr(found)


def test_what_concerns_the_model_has_defaults_and_no_price():
    found = Settings.from_env({})
    assert (found.model_seconds, found.model_temperature, found.model_price) == (120.0, 0.0, None)
    told = {
        "SHOWHOW_MODEL_SECONDS": "30",
        "SHOWHOW_MODEL_TEMPERATURE": "default",
        "SHOWHOW_MODEL_PRICE": "2.50/10",
    }
    found = Settings.from_env(told)
    assert (found.model_seconds, found.model_temperature, found.model_price) == (30.0, None, (2.5, 10.0))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("SHOWHOW_MODEL_SECONDS", "soon"),
        ("SHOWHOW_MODEL_SECONDS", "0"),
        ("SHOWHOW_MODEL_SECONDS", "-5"),
        ("SHOWHOW_MODEL_TEMPERATURE", "hot"),
        ("SHOWHOW_MODEL_PRICE", "10"),
        ("SHOWHOW_MODEL_PRICE", "a/b"),
        ("SHOWHOW_MODEL_PRICE", "-1/2"),
        ("SHOWHOW_MODEL_PRICE", "nan/inf"),
    ],
)
def test_what_cannot_be_used_is_told_with_an_example(name: str, written: str):
    with pytest.raises(SettingsError, match=rf"{name} is '{written}'; write .*such as"):
        Settings.from_env({name: written})


@pytest.mark.parametrize(
    ("written", "offline"), [("", False), ("0", False), ("no", False), ("1", True), ("True", True)]
)
def test_live_worlds_answer_from_their_record_where_that_is_set(written, offline):
    assert Settings.from_env({"SHOWHOW_OFFLINE": written}).offline is offline


def test_a_moment_has_a_time_zone_written_or_this_machines():
    assert Settings.from_env({}).as_of is None
    written = Settings.from_env({"SHOWHOW_AS_OF": "2026-11-21T14:00+02:00"}).as_of
    assert written == datetime(2026, 11, 21, 12, tzinfo=UTC)
    here = Settings.from_env({"SHOWHOW_AS_OF": "2026-11-21"}).as_of
    assert here is not None
    assert here.replace(tzinfo=None) == datetime(2026, 11, 21)  # noqa: DTZ001 - the machine's own midnight
    assert here.utcoffset() is not None


@pytest.mark.parametrize("written", ["off", "spans", "content", "Content", ""])
def test_telemetry_is_off_unless_it_is_turned_on(written: str) -> None:
    assert Settings.from_env({"SHOWHOW_TELEMETRY": written}).telemetry == (written or "off").casefold()


@pytest.mark.parametrize(
    "wrong", [{"SHOWHOW_OFFLINE": "maybe"}, {"SHOWHOW_AS_OF": "yesterday"}, {"SHOWHOW_TELEMETRY": "1"}]
)
def test_what_cannot_be_meant_for_live_worlds_is_told(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(SettingsError, match=f"{name} is '{value}'"):
        Settings.from_env(wrong)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me@db.example/x", "postgresql://me:a%2Fb%40c@db.example/x"),
        ("postgresql+psycopg:///x", "postgresql+psycopg://:a%2Fb%40c@/x"),
        ("postgresql://me:own@db.example/x", "postgresql://me:own@db.example/x"),
        ("sqlite:////x.db", "sqlite:////x.db"),
    ],
)
def test_the_password_of_libpq_is_part_of_the_address(url: str, expected: str):
    assert Settings.from_env({"SHOWHOW_DATABASE_URL": url, "PGPASSWORD": "a/b@c"}).database_url == expected


def test_a_login_is_one_of_those_that_there_are_and_a_proxy_needs_a_secret():
    assert Settings.from_env({}).login == ""
    assert Settings.from_env({"SHOWHOW_LOGIN": "Password"}).login == "password"
    with pytest.raises(SettingsError, match="SHOWHOW_LOGIN is 'ldap'; write password or oidc or proxy"):
        Settings.from_env({"SHOWHOW_LOGIN": "ldap"})
    for secret in ("", "short"):
        with pytest.raises(SettingsError, match="SHOWHOW_LOGIN_SECRET has fewer than 16"):
            Settings.from_env({"SHOWHOW_LOGIN": "proxy", "SHOWHOW_LOGIN_SECRET": secret})
    settings = Settings.from_env({"SHOWHOW_LOGIN": "proxy", "SHOWHOW_LOGIN_SECRET": "s" * 16})
    assert (settings.login_header, settings.login_secret in repr(settings)) == ("X-Forwarded-User", False)
    with pytest.raises(SettingsError, match="SHOWHOW_OIDC_SECRET is empty"):
        Settings.from_env({"SHOWHOW_LOGIN": "oidc", "SHOWHOW_OIDC_ISSUER": "https://idp.example"})
