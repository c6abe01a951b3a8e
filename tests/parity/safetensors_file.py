"""Writes safetensors files: enough of the format for fixtures, so that no package is needed for it."""

import json
import struct

import numpy as np

DTYPES = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}


def write(path, tensors, notes):
    """tensors: name -> float32 or int64 array; notes: name -> text, kept in the file's metadata."""
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # widest dtype first: all aligned
    header, end = {"__metadata__": {"format": "pt", **notes}}, 0
    for name in order:
        begin, end = end, end + arrays[name].nbytes
        header[name] = {
            "dtype": DTYPES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(arrays[name].tobytes())
