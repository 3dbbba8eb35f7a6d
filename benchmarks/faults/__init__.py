"""Fault injection: count every store, file and commit boundary of a call, and fail at a chosen one."""
