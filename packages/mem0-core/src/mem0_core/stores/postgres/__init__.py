"""Store in PostgreSQL with pgvector, for many workers and hosts: partitions, full-text lexicon and vector search.

`store.PostgresStore` is the entry point; importing the package does not import psycopg. `engine` holds pools and locks.
Stores of a memory are built in `api`. It may import `stores.sql` and everything that package may import.
"""
