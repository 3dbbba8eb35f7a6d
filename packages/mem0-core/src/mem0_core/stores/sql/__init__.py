"""SQL that SQLite and PostgreSQL share: store methods as steps over a small dialect.

`steps` and `dialect` define statements and their differences; each other module is one concern of a store. Only the
packages `stores.sqlite` and `stores.postgres` import it. It may import domain, errors, interfaces, flow and language.
"""
