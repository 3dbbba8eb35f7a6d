"""Changes of memories in SQL tables: planned changes, the retraction of a source, and the contents of a scope.

`stores.sql.store` and the stores of `stores.sqlite` and `stores.postgres` run them as steps of their transactions. It
may import `domain`, `flow`, `interfaces` and the other modules of `stores.sql`, except its store and maintenance.
"""
