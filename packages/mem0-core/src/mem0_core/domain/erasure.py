"""The dicts that erasures return, and their signatures."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, TypedDict

ERASURE, RECEIPT = "erasure", "receipt"
"""Kinds of entries in the registry of a store: erasures that have begun, and receipts of those that are done."""

RECEIPT_FORMAT = "mem0-erasure-receipt/1"
ALGORITHM = "HMAC-SHA256"


class ProbeDict(TypedDict):
    """One search for residue.

    Attributes:
        where: "table memories", "file memory.db", or the name of a projection.
        searched: rows of a table, bytes of a file, or entries of a projection.
        found: number of findings; 0 if nothing is left.
    """

    where: str
    searched: int
    found: int


class CopyDict(TypedDict):
    """A copy of the store that an erasure cannot reach.

    Attributes:
        kind: "backup", "export", "drawing", "server pages" (bytes that a server left in its pages) or "server log", of
            the store or of a projection, such as Neo4j or a vector store.
        id: identity of the copy, as `Memory.backup` returned it.
        path: location where it was written.
        at: ISO 8601 time at which it was begun.
    """

    kind: str
    id: str
    path: str
    at: str


class ErasureReceipt(TypedDict):
    """Proof of an erasure. It contains digests and counts, and no text of the subject.

    Attributes:
        format: version of this form.
        id: identity of the erasure.
        store: identity of the store.
        subject: keyed digest of each id of the subject.
        reason: reason that the caller gave.
        started_at: ISO 8601 time of the first attempt.
        finished_at: ISO 8601 time of this receipt.
        attempts: number of attempts; more than 1 after an interruption.
        erased: number of rows erased, by table.
        fingerprints: number of fingerprints of the erased data that the probes searched for.
        unsearchable: number of texts too short, or too uniform, to search for.
        shared: number of fingerprints that data of others contains too; they prove nothing.
        probes: searches for residue.
        complete: True if no probe found anything.
        out_of_reach: copies of the store that were made earlier.
        algorithm: algorithm of the signature.
        signature: signature of all other values, by a key that is kept with the store.
    """

    format: str
    id: str
    store: str
    subject: dict[str, str]
    reason: str
    started_at: str
    finished_at: str
    attempts: int
    erased: dict[str, int]
    fingerprints: int
    unsearchable: int
    shared: int
    probes: list[ProbeDict]
    complete: bool
    out_of_reach: list[CopyDict]
    algorithm: str
    signature: str


def sign(receipt: Mapping[str, Any], key: str) -> str:
    """Return the signature of a receipt."""
    signed = {name: value for name, value in receipt.items() if name != "signature"}
    text = json.dumps(signed, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_signed(receipt: Mapping[str, Any], key: str) -> bool:
    """Return True if a receipt carries the signature of its values by this key."""
    given = receipt.get("signature")
    try:
        return isinstance(given, str) and hmac.compare_digest(given.encode(), sign(receipt, key).encode())
    except (TypeError, ValueError):  # a value that is no JSON
        return False


def subject_digest(axis: str, value: str, key: str) -> str:
    """Return the keyed digest of an id, which only the holder of the key can compare with a known id."""
    return hmac.new(key.encode(), f"subject\0{axis}\0{value}".encode(), hashlib.sha256).hexdigest()
