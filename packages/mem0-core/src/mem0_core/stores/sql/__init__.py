"""SQL that SQLite and PostgreSQL share: store methods as steps over a small dialect.

`engine` defines statements and their differences, `graph` holds entities and relations; each module is one concern of a
store. Only the packages `stores.sqlite` and `stores.postgres` import it. It may import domain, errors, interfaces, flow
and language.
"""
