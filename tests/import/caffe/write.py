"""write.py: files of Caffe's form without Caffe: the binary form of NetParameter (.caffemodel), of BlobProto (.binaryproto),
and Caffe's HDF5 form. A layer's blobs are numpy arrays; `how` says in which of the forms that files have they are stored."""

import numpy as np


def varint(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, contents):
    """A field of bytes: text, bytes or a message."""
    contents = contents.encode() if isinstance(contents, str) else contents
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def number(number_, value):
    return varint(number_ << 3) + varint(value)


def blob(array, how=""):
    """BlobProto: `legacy` has four dims in fields of their own, `double`, `raw` (float32) and `half` other numbers, `unpacked`
    a tag before each number."""
    shape = field(7, field(1, b"".join(varint(n) for n in array.shape)))
    if "legacy" in how:
        dims = (1,) * (4 - array.ndim) + array.shape
        shape = b"".join(number(1 + i, n) for i, n in enumerate(dims))
    if "double" in how:
        return shape + field(8, array.astype("<f8").tobytes())
    if "half" in how:
        return shape + number(10, 2) + field(12, array.astype("<f2").tobytes())
    if "raw" in how:
        return shape + number(10, 1) + field(12, array.astype("<f4").tobytes())
    if "unpacked" in how:
        return shape + b"".join(varint(5 << 3 | 5) + one.tobytes() for one in array.astype("<f4").reshape(-1))
    return shape + field(5, array.astype("<f4").tobytes())


# The numbers of V1LayerParameter.LayerType.
OLD_TYPES = {"CONVOLUTION": 4, "INNER_PRODUCT": 14}


def caffemodel(layers, how=""):
    """NetParameter of (name, type, blobs); `old`: of the first form, field 2 instead of 100."""
    out = field(1, "net")
    for name, kind, blobs in layers:
        if "old" in how:
            message = field(4, name) + number(5, OLD_TYPES[kind]) + b"".join(field(6, blob(b, how)) for b in blobs)
            out += field(2, message)
        else:
            message = (field(1, name) if name else b"") + field(2, kind) + b"".join(field(7, blob(b, how)) for b in blobs)
            out += field(100, message)
    return out


def caffemodel_h5(path, layers):
    """/data/LAYER/NUMBER, as Caffe writes it."""
    import h5py
    with h5py.File(path, "w") as file:
        for name, _, blobs in layers:
            group = file.require_group("data").require_group(name)
            for i, array in enumerate(blobs):
                group.create_dataset(str(i), data=array.astype("<f4"))


def binaryproto(path, array):
    with open(path, "wb") as file:
        file.write(blob(array, "legacy"))
