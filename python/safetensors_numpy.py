#!/usr/bin/env python3
"""Reads and writes .safetensors files, checkpoints of miniqat for example, as dictionaries of NumPy arrays.

    import safetensors_numpy
    tensors = safetensors_numpy.read("RUN/checkpoint.safetensors")
    print(tensors["conv1/weights"].shape)

As a program it lists a file's tensors: python3 python/safetensors_numpy.py RUN/checkpoint.safetensors

A file is 8 bytes of little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, then the data.
"""

import json
import math
import sys

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def read(path):
    """The tensors of a file by name."""
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
    """Writes arrays by name, of the types in DTYPES."""
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": NAMES[values.dtype], "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} FILE.safetensors")
    tensors = read(sys.argv[1])
    width = max(map(len, tensors), default=0)
    for name, values in tensors.items():
        ends = f"{values.min():.6g} to {values.max():.6g}" if values.size else "empty"
        print(f"{name:<{width}}  {values.dtype}  {list(values.shape)}  {ends}")


if __name__ == "__main__":
    main()
