"""Connections to PostgreSQL and its dialect: pools, transactions, advisory locks, filters and row mapping.

`session.Database` runs the steps of a store. The other modules of `stores.postgres` import this package; it may import
`stores.sql` and everything that package may import.
"""
