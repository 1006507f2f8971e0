"""TIFF files of every kind that is read, written by hand, so that each tag is what the case is about."""

import struct

import numpy as np

FORMATS = {3: "H", 4: "I"}


def tiff(width, height, bits, samples, photometric, data, **tags):
    """One strip, or the planes, strips or tiles of the list `data`. Tags that are given replace those made here."""
    end = tags.pop("end", "<")
    blocks = data if isinstance(data, list) else [data]
    place = 279 if "tag322" not in tags else 325
    entries = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [1]),
               262: (3, [photometric]), 277: (3, [samples]), 284: (3, [1]),
               place: (4, [len(block) for block in blocks]), place - (6 if place == 279 else 1): (4, [0] * len(blocks))}
    if place == 279:
        entries[278] = (4, [height])
    entries |= {int(name[3:]): (4 if max(values) > 65535 else 3, list(values)) for name, values in tags.items()}

    def directory(start):
        at, fields, far = 8 + 2 + 12 * len(entries) + 4, b"", b""
        for tag, (kind, values) in sorted(entries.items()):
            if tag in (273, 324):
                values = [start + sum(map(len, blocks[:i])) for i in range(len(blocks))]
            raw = struct.pack(end + FORMATS[kind] * len(values), *values)
            if len(raw) > 4:
                place, far = at + len(far), far + raw + bytes(len(raw) % 2)
                raw = struct.pack(end + "I", place)
            fields += struct.pack(end + "HHI", tag, kind, len(values)) + raw.ljust(4, b"\0")
        return fields, far, at + len(far)

    fields, far, start = directory(0)
    fields, far, start = directory(start)
    head = (b"II*\0" if end == "<" else b"MM\0*") + struct.pack(end + "I", 8)
    return head + struct.pack(end + "H", len(entries)) + fields + bytes(4) + far + b"".join(blocks)


def tiles(pixels, side):
    """Tiles of side x side, padded at the edges."""
    height, width, _ = pixels.shape
    padded = np.zeros((-(-height // side) * side, -(-width // side) * side, pixels.shape[2]), pixels.dtype)
    padded[:height, :width] = pixels
    return [padded[y:y + side, x:x + side].tobytes()
            for y in range(0, height, side) for x in range(0, width, side)]


def cases(rng):
    """Name, file, and who reads it: P(illow), O(penCV)."""
    w, h = 13, 9

    def numbers(samples, bits=8):
        return rng.integers(0, 1 << bits, (h, w, samples), dtype=np.uint8 if bits == 8 else np.uint16)

    colours = numbers(3)
    yield "tiff rgb", tiff(w, h, 8, 3, 2, colours.tobytes()), "PO"
    yield "tiff strips", tiff(w, h, 8, 3, 2, [row.tobytes() for row in colours], tag278=[1]), "PO"
    yield "tiff planes", tiff(w, h, 8, 3, 2, [colours[..., c].tobytes() for c in range(3)], tag284=[2]), "PO"
    for side in (16, 32):
        big = rng.integers(0, 256, (37, 45, 3), dtype=np.uint8)
        yield f"tiff tiles {side}", tiff(45, 37, 8, 3, 2, tiles(big, side), tag322=[side], tag323=[side]), "PO"
    for photometric in (0, 1):
        for bits in (1, 2, 4, 8):
            data = rng.bytes((w * bits + 7) // 8 * h)
            yield f"tiff grey {photometric} {bits}", tiff(w, h, bits, 1, photometric, data), "PO" if bits in (1, 8) else "P"
        wide = numbers(1, 16)
        wide[0, :6, 0] = (0, 255, 256, 128, 65408, 65535)
        for end in "<>":
            yield (f"tiff 16 {photometric}{end}",
                   tiff(w, h, 16, 1, photometric, wide.astype(end + "u2").tobytes(), end=end),
                   "PO" if photometric or end == "<" else "O")
    for end in "<>":
        yield f"tiff rgb 16{end}", tiff(w, h, 16, 3, 2, numbers(3, 16).astype(end + "u2").tobytes(), end=end), "PO"
    for extra in (0, 1, 2):
        four = numbers(4)
        four[0, 0, 3], four[0, 1, 3] = 0, 255
        yield f"tiff alpha {extra}", tiff(w, h, 8, 4, 2, four.tobytes(), tag338=[extra]), "PO"
        yield f"tiff alpha 16 {extra}", tiff(w, h, 16, 4, 2, numbers(4, 16).tobytes(), tag338=[extra]), "PO"
    for extra in (0, 2):
        yield f"tiff grey alpha {extra}", tiff(w, h, 8, 2, 1, numbers(2).tobytes(), tag338=[extra]), "PO"
    yield "tiff cmyk", tiff(w, h, 8, 4, 5, numbers(4).tobytes(), tag332=[1]), "PO"
    yield "tiff cmyk 16", tiff(w, h, 16, 4, 5, numbers(4, 16).tobytes(), tag332=[1]), "P"
    for bits in (1, 2, 4, 8):
        palette = rng.integers(0, 65536, 3 << bits)
        data = rng.bytes((w * bits + 7) // 8 * h)
        yield f"tiff palette {bits}", tiff(w, h, bits, 1, 3, data, tag320=palette), "PO" if bits in (4, 8) else "P"
    small = rng.integers(0, 256, 3 << 8)
    yield "tiff palette of bytes", tiff(w, h, 8, 1, 3, numbers(1).tobytes(), tag320=small), "PO"
    for orientation in range(1, 9):
        # OpenCV 5 fails where the sides change places.
        yield (f"tiff turned {orientation}", tiff(w, h, 8, 3, 2, colours.tobytes(), tag274=[orientation]),
               "PO" if orientation < 5 else "P")
