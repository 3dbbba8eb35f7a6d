"""Administration of a store: checks and repairs, backups, transfer to another store, statistics, adoption.

`doctor` compares a store with its projections, `backup` writes and restores copies, `transfer` moves everything to
another database, `statistics` counts records, `adopt` imports memories under their own ids. Used by `api` and `cli`;
may import everything below `api` (stores, ingest, recall), but neither `api` nor `memory`.
"""
