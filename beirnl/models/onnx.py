"""The weights in an ONNX file, read from its protobuf encoding; the ``onnx`` package is not needed.

Field numbers are those of ``onnx.proto``: ModelProto.graph 7; GraphProto.node 1, initializer 5;
NodeProto.input 1, name 3, op_type 4; TensorProto.dims 1, data_type 2, name 8, raw_data 9.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_FLOAT = 1


def named_weights(path: Path) -> dict[str, np.ndarray]:
    """The float32 weights of a graph by their name in the module it was exported from.

    An exporter stores the weight of a linear layer transposed, under a made-up name; the layer is known from
    the name of the product that uses it (``/auto_model/encoder/.../MatMul``), and so is the weight's own.

    Args:
        path: ONNX file with its weights inside.

    Returns:
        Arrays by name, in the shapes of the module's state.
    """
    graph = next(value for field, value in _fields(memoryview(path.read_bytes())) if field == 7)
    stored = dict(filter(None, (_tensor(value) for field, value in _fields(graph) if field == 5)))
    weights = {name: array for name, array in stored.items() if not name.startswith("onnx::")}
    for field, value in _fields(graph):
        if field == 1:
            inputs, name, operation = _node(value)
            for used in inputs:
                if operation == "MatMul" and used.startswith("onnx::") and used in stored:
                    layer = name.strip("/").removesuffix("/MatMul").replace("/", ".")
                    weights[f"{layer}.weight"] = stored[used].T
    return weights


def _node(data: memoryview) -> tuple[list[str], str, str]:
    inputs, name, operation = [], "", ""
    for field, value in _fields(data):
        if field == 1:
            inputs.append(str(value, "utf-8"))
        elif field == 3:
            name = str(value, "utf-8")
        elif field == 4:
            operation = str(value, "utf-8")
    return inputs, name, operation


def _tensor(data: memoryview) -> tuple[str, np.ndarray] | None:
    """Name and array of a tensor; ``None`` for types other than float32, which hold indices."""
    dims: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field, value in _fields(data):
        if field == 1:
            dims += [value] if isinstance(value, int) else _varints(value)
        elif field == 2:
            kind = value
        elif field == 8:
            name = str(value, "utf-8")
        elif field == 9:
            raw = value
    return (name, np.frombuffer(raw, "<f4").reshape(dims)) if kind == _FLOAT else None


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Field numbers of one protobuf message, and values: numbers or slices of bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
        else:
            length = {1: 8, 5: 4}.get(wire)
            if length is None:
                length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length


def _varints(data: memoryview) -> list[int]:
    position, values = 0, []
    while position < len(data):
        value, position = _varint(data, position)
        values.append(value)
    return values


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
