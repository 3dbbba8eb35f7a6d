"""Embedded store in one SQLite file: connections, word index, file checks and copies.

`store.SQLiteStore` is the entry point. Stores of a memory are built in `api`, and `admin` and `interchange` open files.
It may import `stores.sql` and everything that package may import.
"""
