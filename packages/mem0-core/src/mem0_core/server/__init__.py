"""Servers over one `Memory`: the Model Context Protocol, and a REST interface.

A server translates and authenticates; everything else is a method of the library. Each module imports its framework,
so this package imports none of them.
"""

from __future__ import annotations

from mem0_core.server.scope import ServerScope

__all__ = ["ServerScope"]
