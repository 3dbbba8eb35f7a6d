"""Encryption at rest of an SQLite file: keys per tenant, sealed tables and the views that open them.

`vault` seals and opens values, `sealed_tables` puts views over sealed tables, and `files` encrypts and checks a file.
Only `stores.sqlite` imports it. It needs the extra `encryption` once a key is given.
"""
