"""The services of a process."""

from pathlib import Path

from showhow.guard.destinations import Grant
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.source import Article


def services_of(home: Path, **model: str) -> Services:
    environ = {"SHOWHOW_HOME": str(home), **model}
    return Services(Settings.from_env(environ), environ)


def build(home: Path, text: str) -> None:
    graph = home / "graph.ttl"
    graph.write_text(
        f'<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "{text}"@en ; <http://x/is> <http://x/b> .'
    )
    build_world(home / "worlds", "w", WorldContents([Article("A", (text,))], graph), replace=True)


def test_a_world_is_opened_once_and_again_after_a_rebuild(tmp_path: Path):
    services = services_of(tmp_path)
    build(tmp_path, "old")
    world = services.open_world("w")
    assert services.open_world("w") is world
    assert [entity.label for entity in world.graph.entities(["http://x/a"])] == ["old"]
    build(tmp_path, "new")
    rebuilt = services.open_world("w")
    assert rebuilt is not world
    assert [entity.label for entity in rebuilt.graph.entities(["http://x/a"])] == ["new"]
    assert rebuilt.text.article("A").sentences == ("new",)
    services.close()


def test_the_language_model_is_the_configured_one_or_none(tmp_path: Path):
    build(tmp_path, "old")
    without = services_of(tmp_path)
    assert without.chat_client() is None
    assert without.tool_context("w").chat is None
    services = services_of(
        tmp_path,
        SHOWHOW_MODEL="some-model",
        SHOWHOW_MODEL_BASE_URL="http://127.0.0.1:9/v1",
        SHOWHOW_MODEL_PRICE="1/2",
    )
    chat = services.chat_client()
    assert chat is not None
    assert (chat.name, chat.seconds) == ("some-model", 120.0)
    assert chat.price is not None
    assert (chat.price.input, chat.price.output) == (1.0, 2.0)
    assert services.tool_context("w").chat is chat


def test_two_services_share_nothing(tmp_path: Path):
    build(tmp_path, "old")
    first, second = services_of(tmp_path), services_of(tmp_path)
    assert first.open_world("w") is not second.open_world("w")
    assert first.active_runs is not second.active_runs
    first.close()
    assert second.open_world("w").text.article("A").sentences == ("old",)
    second.close()


def test_secrets_are_those_of_names_profiles_tools_and_addresses(tmp_path: Path):
    (tmp_path / "tools.toml").write_text(
        '[functions.count]\nplace = "mine:count"\nenvironment = ["COUNTER", "HOME"]\n'
        '[servers.far]\nurl = "https://tools.example/mcp"\ntoken = "FAR"\n'
    )
    services = services_of(
        tmp_path,
        COUNTER="planted-counter-4711",
        FAR="planted-far-4711",
        HOME="/home/of-somebody",
        SOME_API_KEY="planted-token-4711",
        ALLOWED="planted-allowed-4711",
        SHOWHOW_DATABASE_URL="postgresql://me:planted-password-4711@127.0.0.1/x",
        UNRELATED="of no interest",
    )
    services.secret_table.allow([Grant("ALLOWED", "https://a.example")])
    planted = {f"planted-{name}-4711" for name in ("counter", "far", "token", "allowed", "password")}
    assert {*services.secrets} == planted
