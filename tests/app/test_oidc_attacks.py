"""A provider of identities that answers as it likes: whose tokens are taken, and what a broken answer becomes."""

import base64
import hmac
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from showhow.app.login import COOKIE, SECURE_COOKIE
from showhow.db.people import logins
from tests.app.test_login import OWN, Team, migrated  # noqa: F401 - a fixture
from tests.app.test_oidc import come_back, start
from tests.servers.loopback import QuietServer

SECRET = "the secret of this client"  # noqa: S105 - of this test
KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def describe_key(key: rsa.RSAPrivateKey, **fields: str) -> dict[str, Any]:
    return {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), **fields}


class Provider:
    """Its answers by path; a test replaces what it lies about."""

    def __init__(self) -> None:
        answers: dict[str, Any] = {}
        self.answers = answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = answers.get(urlsplit(self.path).path)
                content = json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815 - likewise

            def log_message(self, *_: Any) -> None:
                pass

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.metadata = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }
        answers["/.well-known/openid-configuration"] = self.metadata
        answers["/keys"] = {"keys": [describe_key(KEY, kid="1", use="sig")]}

    def claim(self, nonce: str, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        own = {"iss": self.metadata["issuer"], "aud": "showhow", "sub": "ben's", "iat": now, "exp": now + 60}
        return {name: value for name, value in ({**own, "nonce": nonce} | changed).items() if value is not None}


@pytest.fixture
def provider() -> Iterator[Provider]:
    served = Provider()
    thread = threading.Thread(target=served.server.serve_forever)
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def serve(migrated: Path, folder: Path, provider: Provider, **settings: str) -> Team:  # noqa: F811 - a fixture
    shutil.copytree(migrated, folder, dirs_exist_ok=True)
    given = {"SHOWHOW_OIDC_ISSUER": provider.url, "SHOWHOW_OIDC_CLIENT": "showhow", "SHOWHOW_OIDC_SECRET": SECRET}
    team = Team(folder, **({"SHOWHOW_LOGIN": "oidc", "SHOWHOW_URL": OWN} | given | settings))
    with team.services.database.begin() as session:
        logins.link_subject(session, team.ids["ben"], provider.url, "ben's")
    return team


@pytest.fixture
def team(migrated: Path, tmp_path: Path, provider: Provider) -> Iterator[Team]:  # noqa: F811 - a fixture
    served = serve(migrated, tmp_path, provider)
    yield served
    served.services.close()


def log_in(team: Team, provider: Provider, sign: Callable[[str], Any]) -> Any:
    """Come back from the provider, which answers with the token that `sign` makes for the nonce."""
    address, state = start(team)
    query = parse_qs(urlsplit(address).query)
    provider.answers["/token"] = {"id_token": sign(query["nonce"][0])}
    return come_back(team, f"/login/callback?code=x&state={query['state'][0]}", state)


def sign(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", **header: str) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "1"} | header)


def sign_with_public_key(claims: dict[str, Any]) -> str:
    """HS256, whose secret is the public key that everybody has; the library refuses to make such a token."""
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "1"}, claims]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(PUBLIC.encode(), text, "sha256")).rstrip(b"=")
    return f"{text.decode()}.{signature.decode()}"


def test_a_token_is_taken_that_is_of_this_login_whichever_way_the_provider_writes_its_name(
    team: Team, provider: Provider
):
    assert team.who(log_in(team, provider, lambda nonce: sign(provider.claim(nonce))).cookies[COOKIE]) == "ben"
    # Auth0 writes a slash after its issuer, Keycloak names a key for encryption first, others send no id of the key.
    provider.metadata["issuer"] = f"{provider.url}/"
    provider.answers["/keys"] = {
        "keys": [
            describe_key(OTHER_KEY, kid="0", use="enc", alg="RSA-OAEP"),
            describe_key(KEY, kid="1", use="sig"),
        ]
    }
    provider.metadata["token_endpoint_auth_methods_supported"] = None  # type: ignore[assignment]
    without_id = {"aud": ["showhow", "another"], "azp": "showhow"}
    reply = log_in(team, provider, lambda nonce: jwt.encode(provider.claim(nonce, **without_id), KEY, "RS256"))
    assert team.who(reply.cookies[COOKIE]) == "ben", reply.text


FORGED: dict[str, Callable[[Provider, str], Any]] = {
    "none": lambda provider, nonce: jwt.encode(provider.claim(nonce), None, algorithm="none", headers={"kid": "1"}),
    "public key as secret": lambda provider, nonce: sign_with_public_key(provider.claim(nonce)),
    "client's secret": lambda provider, nonce: sign(provider.claim(nonce), SECRET * 2, "HS256"),
    "another key": lambda provider, nonce: sign(provider.claim(nonce), OTHER_KEY),
    "unknown id of a key": lambda provider, nonce: sign(provider.claim(nonce), kid="2"),
    "own key in the header": lambda provider, nonce: sign(
        provider.claim(nonce),
        OTHER_KEY,
        jwk=describe_key(OTHER_KEY),  # type: ignore[arg-type]
    ),
    "issuer": lambda provider, nonce: sign(provider.claim(nonce, iss="https://evil.example")),
    "audience": lambda provider, nonce: sign(provider.claim(nonce, aud="another")),
    "no audience": lambda provider, nonce: sign(provider.claim(nonce, aud=None)),
    "authorized party": lambda provider, nonce: sign(provider.claim(nonce, aud=["showhow", "x"], azp="x")),
    "nonce": lambda provider, _nonce: sign(provider.claim("x")),
    "no nonce": lambda provider, nonce: sign({**provider.claim(nonce), "nonce": None}),
    "expired": lambda provider, nonce: sign(provider.claim(nonce, exp=int(time.time()) - 3600)),
    "of tomorrow": lambda provider, nonce: sign(provider.claim(nonce, iat=int(time.time()) + 86_400)),
    "no subject": lambda provider, nonce: sign(provider.claim(nonce, sub=None)),
    "subject of another kind": lambda provider, nonce: sign(provider.claim(nonce, sub=None) | {"email": "ben's"}),
    "no token": lambda _provider, _nonce: None,
    "no text": lambda _provider, _nonce: {"a": 1},
}


def test_a_forged_token_opens_nothing(team: Team, provider: Provider, caplog: pytest.LogCaptureFixture):
    for kind, forge in FORGED.items():
        reply = log_in(team, provider, lambda nonce, forge=forge: forge(provider, nonce))  # type: ignore[misc]
        assert (reply.status_code, "did not work" in reply.text) == (403, True), kind
        assert COOKIE not in reply.cookies, kind
    assert SECRET not in caplog.text


@pytest.mark.parametrize("keys", [{}, {"keys": []}, {"keys": 1}, {"keys": [1]}, {"keys": [{"kty": "RSA"}]}, []])
def test_broken_keys_are_told_in_a_sentence(team: Team, provider: Provider, keys: Any):
    provider.answers["/keys"] = keys
    reply = log_in(team, provider, lambda nonce: sign(provider.claim(nonce)))
    assert (reply.status_code, "The login did not work" in reply.text) == (403, True)


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://idp.example/", "//idp.example", "", None, 7, "/a"])
@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_a_login_is_entrusted_to_encrypted_addresses_only(team: Team, provider: Provider, endpoint: str, address: Any):
    provider.metadata[endpoint] = address
    if endpoint == "authorization_endpoint":
        reply = team.ask("GET", "/login/start")
    else:
        reply = log_in(team, provider, lambda nonce: sign(provider.claim(nonce)))
    assert (reply.status_code, "The login did not work" in reply.text) == (403, True)


def test_a_login_that_was_begun_long_ago_is_not_finished(team: Team, provider: Provider):
    address, state = start(team)
    query = parse_qs(urlsplit(address).query)
    provider.answers["/token"] = {"id_token": sign(provider.claim(query["nonce"][0]))}
    kept = jwt.decode(state, options={"verify_signature": False})
    key = hmac.digest(SECRET.encode(), b"the state of a login", "sha256")
    for begun, status in ((int(time.time()) - 1, 403), (kept["exp"], 303)):
        cookie = jwt.encode(kept | {"exp": begun}, key)
        reply = come_back(team, f"/login/callback?code=x&state={query['state'][0]}", cookie)
        assert reply.status_code == status


def test_where_the_servers_address_is_https_the_cookie_is_bound_to_it(
    migrated: Path,  # noqa: F811 - a fixture
    tmp_path: Path,
    provider: Provider,
):
    team = serve(migrated, tmp_path, provider, SHOWHOW_URL=OWN.replace("http", "https"))
    reply = log_in(team, provider, lambda nonce: sign(provider.claim(nonce)))
    assert team.who(Cookie=f"{SECURE_COOKIE}={reply.cookies[SECURE_COOKIE]}") == "ben"
    assert COOKIE not in reply.cookies
    team.services.close()
