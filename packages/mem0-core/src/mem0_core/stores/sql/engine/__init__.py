"""Statements as steps, and the dialect in which SQLite and PostgreSQL say them differently.

Every module of `stores.sql`, `stores.sqlite` and `stores.postgres` may import it. It imports domain, errors and
interfaces only.
"""
