"""The graph of entities and relations in SQL: reading, writing, erasure, and merges that can be reverted.

`stores.sqlite` and `stores.postgres` build `reader.SqlGraph`, and `stores.sql.store` builds `merges.SqlMerges`; the
changes of `stores.sql` use the rest. It may import `sql.engine`, `sql.rows` and `sql.meta`.
"""
