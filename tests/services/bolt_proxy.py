"""A Bolt server that answers as Memgraph or Neptune: it passes their shared Cypher to Neo4j, and refuses the rest.

::

    with BoltProxy(neo4j_url, MEMGRAPH) as proxy:
        driver = GraphDatabase.driver(proxy.url)      # the real driver, by the protocol of Memgraph

The proxy decodes every request. It answers the handshake and HELLO as its server does, refuses requests and statements
that the server does not have, and relays the rest. It knows no Cypher beyond the words of a statement.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = ["MEMGRAPH", "NEPTUNE", "BoltProxy", "Profile", "find_fault", "pack", "unpack"]

MAGIC = bytes.fromhex("6060b017")
HELLO, GOODBYE, RESET, RUN, DISCARD, PULL = 0x01, 0x02, 0x0F, 0x10, 0x2F, 0x3F
BEGIN, COMMIT, ROLLBACK, LOGON, LOGOFF = 0x11, 0x12, 0x13, 0x6A, 0x6B
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F
KNOWN_REQUESTS = {RUN, DISCARD, PULL, BEGIN, COMMIT, ROLLBACK}
SYNTAX_ERROR = "Memgraph.ClientError.MemgraphError.MemgraphError"
CHUNK_BYTES = 0xFFFF


@dataclass(frozen=True)
class Profile:
    """One kind of server.

    Attributes:
        version: major and minor version of Bolt that it speaks.
        agent: name that it gives in the answer to HELLO.
        extras: keys that BEGIN and RUN may have in their options.
    """

    version: tuple[int, int]
    agent: str
    extras: frozenset[str] = frozenset({"mode", "tx_timeout", "tx_metadata", "bookmarks"})


MEMGRAPH = Profile((5, 2), "Neo4j/v5.11.0 compatible graph database server - Memgraph")
NEPTUNE = Profile((4, 4), "Neo4j/4.4.0 compatible graph database server - Amazon Neptune")


# --- the shared Cypher -----------------------------------------------------------------------------------------------

_CLAUSES_TEXT = """
    MATCH OPTIONAL WHERE RETURN DISTINCT ORDER BY ASC DESC SKIP LIMIT WITH UNWIND AS CREATE MERGE ON SET DELETE DETACH
    REMOVE AND OR XOR NOT IN IS NULL STARTS ENDS CONTAINS CASE WHEN THEN ELSE END TRUE FALSE UNION ALL
    """
CLAUSES = frozenset(_CLAUSES_TEXT.split())
_FUNCTIONS_TEXT = """
    coalesce count collect size id type labels properties keys startnode endnode min max sum avg tointeger tofloat
    tostring toboolean abs ceil floor round sqrt head last tail range length nodes relationships split trim tolower
    toupper substring replace reverse exists
    """
FUNCTIONS = frozenset(_FUNCTIONS_TEXT.split())
_TOKEN = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<parameter>\$\w+)|(?P<number>\d+(?:\.\d+)?)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign><=|>=|<>|=~|\+=|\.\.|->|<-|::|&&|\|\||[^\s\w])"
)
_SIGNS = frozenset("()[]{},.:=<>+-*/%|") | {"<=", ">=", "<>", "->", "<-", "+="}
_KEYWORDS_ELSEWHERE_TEXT = """
    CALL YIELD FOREACH LOAD CSV SHOW USE CONSTRAINT INDEX DROP EXPLAIN PROFILE PERIODIC SUBQUERY TRANSACTIONS FINISH
    OFFSET INSERT FILTER LET NEXT VECTOR FULLTEXT SHORTEST SHORTESTPATH ALLSHORTESTPATHS
    """
_KEYWORDS_ELSEWHERE = frozenset(_KEYWORDS_ELSEWHERE_TEXT.split())


def find_fault(text: str, values: Mapping[str, Any]) -> str | None:
    """Return the reason why a server of the shared Cypher refuses a statement; None if it does not."""
    tokens = list(_TOKEN.finditer(text))
    for place, token in enumerate(tokens):
        following = tokens[place + 1].group() if place + 1 < len(tokens) else ""
        before = tokens[place - 1].group() if place else ""
        if reason := _find_word_fault(token, before, following):
            return f"line 1:{token.start()} {reason}"
    return _find_parameter_fault(text, values)


def _find_word_fault(token: re.Match[str], before: str, following: str) -> str | None:
    word, kind = token.group(), token.lastgroup
    if kind == "sign" and word not in _SIGNS:
        return f"mismatched input {word!r}"
    if kind != "word" or before in {".", "$", ":"}:
        # after a dot a property; a function of a library has a dot and a parenthesis
        return f"unknown function {word!r}" if before == "." and following == "(" else None
    if word.upper() in _KEYWORDS_ELSEWHERE and word == word.upper():
        return f"mismatched input {word!r}"
    if following == "{" and word.upper() in {"EXISTS", "COUNT", "COLLECT"}:
        return f"mismatched input '{{' after {word!r}"
    if following == "(" and word.upper() not in CLAUSES and word.lower() not in FUNCTIONS:
        return f"function {word!r} does not exist"
    return None


def _find_parameter_fault(text: str, values: Mapping[str, Any]) -> str | None:
    """Return the fault of a value that cannot be a property: a list or a map, in the rows of an UNWIND."""
    named = set(re.findall(r"\$(\w+)", text))
    if missing := named - values.keys():
        return f"parameter ${min(missing)} not provided"
    rows = [row for value in values.values() if isinstance(value, list) for row in value if isinstance(row, dict)]
    for row in rows:
        for key, value in row.items():
            if isinstance(value, (list, dict)):
                return f"the property {key!r} is a {type(value).__name__}"
    return None


# --- PackStream ------------------------------------------------------------------------------------------------------


class Structure(NamedTuple):
    """A message, or a value of a type of its own."""

    tag: int
    fields: list[Any]


def pack(value: Any) -> bytes:
    """Encode a value: None, a bool, a whole number, a text, a list, a map or a structure."""
    if isinstance(value, Structure):
        return bytes([0xB0 | len(value.fields), value.tag]) + b"".join(map(pack, value.fields))
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xcb" + struct.pack(">q", value)
    if isinstance(value, str):
        encoded = value.encode()
        return b"\xd2" + struct.pack(">I", len(encoded)) + encoded
    if isinstance(value, Mapping):
        entries = b"".join(pack(key) + pack(item) for key, item in value.items())
        return b"\xda" + struct.pack(">I", len(value)) + entries
    if isinstance(value, Sequence):
        return b"\xd6" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    raise TypeError(f"no PackStream form of {value!r}")


_SIZES = {0xCC: ("bytes", 1), 0xCD: ("bytes", 2), 0xCE: ("bytes", 4), 0xD0: ("text", 1), 0xD1: ("text", 2)}
_SIZES |= {0xD2: ("text", 4), 0xD4: ("list", 1), 0xD5: ("list", 2), 0xD6: ("list", 4)}
_SIZES |= {0xD8: ("map", 1), 0xD9: ("map", 2), 0xDA: ("map", 4)}
_SMALL = {0x80: "text", 0x90: "list", 0xA0: "map", 0xB0: "structure"}
_NUMBERS = {0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q", 0xC1: ">d"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(data: bytes) -> Any:
    """Decode one value that fills `data`."""
    reader = _Reader(data)
    value = reader.read_value()
    if reader.place != len(data):
        raise ValueError(f"{len(data) - reader.place} bytes after the value")
    return value


@dataclass
class _Reader:
    data: bytes
    place: int = 0

    def read_value(self) -> Any:
        marker = self._take(1)[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker < 0x80 or marker >= 0xF0:
            return marker if marker < 0x80 else marker - 0x100
        if marker in _NUMBERS:
            form = _NUMBERS[marker]
            return struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if marker in _SIZES:
            kind, width = _SIZES[marker]
            return self._read_sized(kind, int.from_bytes(self._take(width)))
        return self._read_sized(_SMALL[marker & 0xF0], marker & 0x0F)

    def _read_sized(self, kind: str, size: int) -> Any:
        if kind == "structure":
            return Structure(self._take(1)[0], [self.read_value() for _ in range(size)])
        if kind == "map":
            return {self.read_value(): self.read_value() for _ in range(size)}
        if kind == "list":
            return [self.read_value() for _ in range(size)]
        return self._take(size).decode() if kind == "text" else self._take(size)

    def _take(self, count: int) -> bytes:
        taken = self.data[self.place : self.place + count]
        if len(taken) < count:
            raise ValueError("the value is cut off")
        self.place += count
        return taken


# --- connections -----------------------------------------------------------------------------------------------------


class _Stream:
    """Messages of Bolt over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def read_bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not (more := self.socket.recv(count - len(data))):
                raise EOFError
            data += more
        return data

    def read_message(self) -> bytes:
        message = b""
        while size := int.from_bytes(self.read_bytes(2)):
            message += self.read_bytes(size)
        return message or self.read_message()  # an empty one keeps the connection alive

    def write_message(self, message: bytes) -> None:
        chunks = [message[start : start + CHUNK_BYTES] for start in range(0, len(message), CHUNK_BYTES)]
        self.socket.sendall(b"".join(len(chunk).to_bytes(2) + chunk for chunk in chunks) + b"\0\0")


@dataclass
class BoltProxy:
    """A server on the loopback interface.

    Attributes:
        refused: reasons of the refused statements, in order.
        passed: number of statements that Neo4j got.
    """

    neo4j_url: str
    profile: Profile
    refused: list[str] = field(default_factory=list)
    passed: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"bolt://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> BoltProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._sockets.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        parts = urlsplit(self.neo4j_url)
        with client, socket.create_connection((parts.hostname, parts.port or 7687)) as server:
            self._sockets.append(server)
            with suppress(EOFError, OSError):  # one side closes the connection
                _Connection(self, _Stream(client), _Stream(server)).run()


class _Connection:
    """One connection of a driver, with its connection to Neo4j."""

    def __init__(self, proxy: BoltProxy, client: _Stream, server: _Stream) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._has_failed = False

    def run(self) -> None:
        if self._shake_hands():
            while self._answer_request(self._client.read_message()):
                pass

    def _shake_hands(self) -> bool:
        """Choose the profile's version if the driver proposes it; else close the connection, as servers do."""
        major, minor = self._proxy.profile.version
        proposed = self._client.read_bytes(20)
        ranges = [proposed[4 + 4 * place : 8 + 4 * place] for place in range(4)]
        known = any(one[3] == major and one[2] - one[1] <= minor <= one[2] for one in ranges)
        chosen = bytes([0, 0, minor, major])
        self._client.socket.sendall(chosen if known and proposed[:4] == MAGIC else bytes(4))
        if not known:
            return False
        self._server.socket.sendall(MAGIC + chosen + bytes(12))
        return self._server.read_bytes(4) == chosen

    def _answer_request(self, message: bytes) -> bool:
        """Answer one request; False after the last one."""
        request = unpack(message)
        if request.tag == GOODBYE:
            return False
        if request.tag == HELLO:
            self._pass_on(message, server=self._proxy.profile.agent)
        elif request.tag == RESET:
            self._has_failed = False
            self._pass_on(message)
        elif self._has_failed:
            self._client.write_message(pack(Structure(IGNORED, [])))
        elif reason := self._find_request_fault(request):
            self._has_failed = True
            self._proxy.refused.append(reason)
            failure = {"code": SYNTAX_ERROR, "message": f"Error on {reason}"}
            self._client.write_message(pack(Structure(FAILURE, [failure])))
        else:
            self._proxy.passed += request.tag == RUN
            self._pass_on(message)
        return True

    def _find_request_fault(self, request: Structure) -> str | None:
        login = {LOGON, LOGOFF} if self._proxy.profile.version >= (5, 1) else set()
        if request.tag not in KNOWN_REQUESTS | login:
            return f"request {request.tag:#x}: it is not known"
        if request.tag in (RUN, BEGIN) and (unknown := request.fields[-1].keys() - self._proxy.profile.extras):
            return f"options: {', '.join(sorted(unknown))}"
        return find_fault(*request.fields[:2]) if request.tag == RUN else None

    def _pass_on(self, message: bytes, **changes: str) -> None:
        """Pass a request on, and the records and the summary of its answer back."""
        self._server.write_message(message)
        while True:
            answer = self._server.read_message()
            tag = answer[1]
            if tag == SUCCESS and changes:
                kept = {"connection_id": unpack(answer).fields[0]["connection_id"]}
                answer = pack(Structure(SUCCESS, [kept | changes]))
            self._has_failed = self._has_failed or tag == FAILURE
            self._client.write_message(answer)
            if tag != RECORD:
                return
