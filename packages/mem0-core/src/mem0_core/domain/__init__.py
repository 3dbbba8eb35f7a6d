"""Domain types: memories, scopes, messages, relations, filters, recipes, policies and timestamps.

Immutable values and pure functions, without stores, models or I/O.
May be imported by every package; imports only `errors` and the standard library.
Import from its modules: `records` (data types), `filters`, `recipes`, `policy`, `timestamps`.
"""
