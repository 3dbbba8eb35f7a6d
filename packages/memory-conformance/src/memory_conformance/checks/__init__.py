"""Suites of checks; importing a module registers its checks."""
