"""Writer of ONNX models, for graphs that refer to their weights in another file.

It serializes the few protocol buffer messages of such a graph, so that the library ``onnx`` is not needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT32, INT64, FLOAT16, BFLOAT16 = 1, 2, 3, 6, 7, 10, 16
"""``TensorProto.DataType``."""
MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators, whose only version is 1."""

_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # wire types
_EXTERNAL = 1  # TensorProto.DataLocation
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_STRING, _ATTRIBUTE_INTS = 1, 2, 3, 7
_DATA_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64, np.dtype(np.uint8): UINT8}


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", **attributes: Any) -> bytes:
    """Serialize a ``NodeProto``; attributes are integers, floats, strings or lists of integers."""
    fields = [*_texts(1, inputs), *_texts(2, outputs), _bytes(4, kind.encode()), *_texts(7, filter(None, [domain]))]
    fields += [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join(fields)


def tensor(name: str, value: Any) -> bytes:
    """Serialize an array of float32, int64 or uint8 as a ``TensorProto``."""
    array: NDArray[Any] = np.asarray(value)
    fields = [_int(1, size) for size in array.shape]
    fields += [_int(2, _DATA_TYPES[array.dtype]), _bytes(8, name.encode())]
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return b"".join([*fields, _bytes(9, little_endian.tobytes())])


def external_tensor(name: str, data_type: int, shape: Sequence[int], file: str, offset: int, length: int) -> bytes:
    """Serialize a ``TensorProto`` whose values are in another file, at `offset`, `length` bytes."""
    fields = [*(_int(1, size) for size in shape), _int(2, data_type), _bytes(8, name.encode())]
    place = {"location": file, "offset": str(offset), "length": str(length)}
    fields += [_bytes(13, b"".join(_texts(1, [key]) + _texts(2, [value]))) for key, value in place.items()]
    return b"".join([*fields, _int(14, _EXTERNAL)])


def value_info(name: str, data_type: int, shape: Sequence[int | str]) -> bytes:
    """Serialize a ``ValueInfoProto``; a string names a dimension of any size."""
    sizes = (_int(1, size) if isinstance(size, int) else _bytes(2, size.encode()) for size in shape)
    dimensions = b"".join(_bytes(1, size) for size in sizes)
    tensor_type = _int(1, data_type) + _bytes(2, dimensions)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor_type))


def model(
    nodes: Iterable[bytes],
    initializers: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    *,
    opset: int,
    ir_version: int,
    domains: Iterable[str] = (),
) -> bytes:
    """Serialize a ``ModelProto`` with one graph; `domains` are those of operators outside the standard."""
    parts = ((1, nodes), (5, initializers), (11, inputs), (12, outputs))
    graph = [_bytes(field, message) for field, messages in parts for message in messages]
    graph.append(_bytes(2, b"bert"))
    versions = {"": opset, **dict.fromkeys(domains, 1)}
    opsets = [_bytes(8, _bytes(1, domain.encode()) + _int(2, version)) for domain, version in versions.items()]
    return b"".join([_int(1, ir_version), _bytes(7, b"".join(graph)), *opsets])


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, int):
        content, kind = _int(3, value), _ATTRIBUTE_INT
    elif isinstance(value, float):
        content, kind = _varint(2 << 3 | _FIXED32) + struct.pack("<f", value), _ATTRIBUTE_FLOAT
    elif isinstance(value, str):
        content, kind = _bytes(4, value.encode()), _ATTRIBUTE_STRING
    else:
        content, kind = b"".join(_int(8, item) for item in value), _ATTRIBUTE_INTS
    return _bytes(1, name.encode()) + content + _int(20, kind)


def _texts(field: int, values: Iterable[str]) -> list[bytes]:
    return [_bytes(field, value.encode()) for value in values]


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
