"""The page of the inspector: one file, with its texts in each language."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from tool_search.core.values.json import compact_json
from tool_search.i18n import LANGUAGES, locale

__all__ = ["page", "page_headers"]

_TEXTS = '<script type="application/json" id="texts">{}</script>'
_PREFIX = "inspector."


@cache
def page() -> str:
    """Return the page."""
    source = (
        files("tool_search.serving.inspector").joinpath("page.html").read_text(encoding="utf-8")
    )
    texts = {
        language: {k: v for k, v in locale(language).items() if k.startswith(_PREFIX)}
        for language in LANGUAGES
    }
    # In a script element a browser reads `</script` and `<!--` before any JSON.
    written = compact_json(texts).replace("<", "\\u003c")
    return source.replace(_TEXTS, _TEXTS.replace("{}", written))


@cache
def page_headers() -> dict[str, str]:
    """Return the headers of the page: no script but its own, nothing from elsewhere."""
    scripts = _hashes(r"<script>(.*?)</script>")
    styles = _hashes(r"<style>(.*?)</style>")
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return {"content-security-policy": policy}


def _hashes(pattern: str) -> str:
    """Return the sources of the page's elements, as a policy names them."""
    found = re.findall(pattern, page(), re.DOTALL)
    digests = (hashlib.sha256(each.encode("utf-8")).digest() for each in found)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
