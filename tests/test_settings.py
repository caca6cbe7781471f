from pathlib import Path

from settings import DEFAULT_ENCODER, Settings


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
    assert found.worlds == tmp_path.resolve() / "worlds"


def test_keys_of_providers_are_no_part_of_the_settings():
    found = Settings.from_env({"OPENAI_API_KEY": "secret-1", "SHOWHOW_HOME": "/tmp"})  # noqa: S108 - never touched
    assert "secret-1" not in repr(found)
