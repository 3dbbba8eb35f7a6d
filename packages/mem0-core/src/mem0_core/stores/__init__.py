"""Stores and indexes, one package per backend; `minimal` completes a narrow store.

`sql` holds the statements that SQLite and PostgreSQL share, `sqlite` and `postgres` the parts that differ, `vector` and
`graph` the indexes that follow a primary store. The factory of `Memory` and the configuration import backends by name;
pipelines use `mem0_core.interfaces` only. Stores import domain, errors, interfaces, flow and language.
"""
