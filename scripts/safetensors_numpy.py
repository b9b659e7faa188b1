"""Reads and writes .safetensors files as dictionaries of NumPy arrays.

A file is 8 bytes of little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, then the data.
"""

import json
import math

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name == "__metadata__":
            continue
        offset = start + entry["data_offsets"][0]
        values = np.frombuffer(content, DTYPES[entry["dtype"]], math.prod(entry["shape"]), offset)
        tensors[name] = values.reshape(entry["shape"]).copy()
    return tensors


def write(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": NAMES[values.dtype], "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
