"""Graph indexes: search by node and sentence vectors, with the relations one hop away.

`embedded` serves from the primary store. `neo4j` and `ladybug` are projections that follow it by sequence number, and
share `cypher`. The configuration names the classes by module, so that a driver is imported on first use.

``api`` and the configuration may import this package. It imports ``flow``, ``interfaces``, ``domain`` and ``errors``.
"""
