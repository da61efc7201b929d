"""The weights in an ONNX file, under the names that they had in the module it was exported from."""

from pathlib import Path

import numpy as np


def named_weights(path: Path) -> dict[str, np.ndarray]:
    """The float32 weights of a graph by name, in the shapes of the module's state.

    An exporter stores the weight of a linear layer transposed, under a made-up name; the layer is known from
    the name of the product that uses it (``/auto_model/encoder/.../MatMul``), and so is the weight's own.

    Args:
        path: ONNX file with its weights inside.
    """
    import onnx
    from onnx import TensorProto, numpy_helper

    graph = onnx.load(str(path)).graph
    tensors = (tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT)
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    weights = {name: array for name, array in stored.items() if not name.startswith("onnx::")}
    for node in graph.node:
        layer = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
        for used in node.input:
            if node.op_type == "MatMul" and used.startswith("onnx::") and used in stored:
                weights[f"{layer}.weight"] = stored[used].T
    return weights
