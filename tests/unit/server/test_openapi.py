"""The OpenAPI document against the specification; the session `mcp` installs the validator."""

from __future__ import annotations

import pytest

from mem0_core.server._openapi import build_document
from mem0_core.server._routes import ROUTES
from mem0_core.server.rest import RestApi


def test_the_document_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(build_document(ROUTES, RestApi, "0.1.0"))
