"""Security headers on every response: pages load nothing from other hosts and are not shown inside other sites."""

import base64
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INDEX_PAGE = Path(streamlit.__file__).parent / "static" / "index.html"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@cache
def security_headers() -> Mapping[str, str]:
    """The headers by name."""
    # Streamlit's components are scripts in blob: URLs, and its styles are inline; it evaluates no text as a script.
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", "blob:", *_hash_inline_scripts()]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "media-src": "'self' blob:",
        "worker-src": "'self' blob:",
        "frame-src": "'none'",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
    }


def _hash_inline_scripts() -> list[str]:
    """The sources that allow the inline scripts of Streamlit's page, and no other inline script."""
    scripts = _INLINE_SCRIPT.findall(_INDEX_PAGE.read_text(encoding="utf-8"))
    return [f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]


class SecurityHeadersMiddleware:
    """Adds the headers to every response of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in security_headers().items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] != "lifespan" else send)
