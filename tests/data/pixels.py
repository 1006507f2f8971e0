"""pixels.py PIXELS [KIND...]: every picture, decoded and resized here, must have the pixels that Pillow and OpenCV give,
bit for bit. The kinds, webp and tiff, are those that the build reads beside the usual ones."""

import glob
import io
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np

try:
    import cv2
    from PIL import Image, ImageOps
except ImportError as error:
    print(f"skipped: {error} (scripts/venv installs what is needed)")
    sys.exit(77)

import tiffs

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("QUENCH_DATA", os.path.join(HERE, "..", "..", "..", "shared", "data"))
warnings.simplefilter("ignore")
rng = np.random.default_rng(5)

# ---- Files of every kind --------------------------------------------------------------------------------------


def smooth(height, width, channels=3):
    """Something that a photograph could be."""
    small = rng.integers(0, 256, (height // 6 + 2, width // 6 + 2, channels), dtype=np.uint8)
    big = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.ascontiguousarray(big.reshape(height, width, channels))


def encoded(form, pixels, mode="RGB", **options):
    out = io.BytesIO()
    Image.fromarray(pixels.squeeze(2) if mode == "L" else pixels, mode).save(out, form, **options)
    return out.getvalue()


def jpegs():
    for quality in (20, 75, 95, 100):
        for sampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
            for size in ((1, 1), (8, 8), (37, 53), (64, 101)):
                yield f"jpeg {quality} {sampling} {size}", encoded(
                    "JPEG", smooth(*size), quality=quality, subsampling=sampling)
    yield "jpeg progressive", encoded("JPEG", smooth(61, 83), progressive=True)
    yield "jpeg grey", encoded("JPEG", smooth(61, 83, 1), "L")
    yield "jpeg cmyk", encoded("JPEG", smooth(61, 83, 4), "CMYK")
    yield "jpeg rgb", encoded("JPEG", smooth(61, 83), keep_rgb=True)
    yield "jpeg restarts", encoded("JPEG", smooth(61, 83), restart_marker_blocks=2)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, kind, channels, extra=b""):
    row = (width * depth * channels + 7) // 8
    raw = b"".join(b"\0" + rng.bytes(row) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra +
            chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def pngs():
    kinds = ((0, (1, 2, 4, 8, 16), 1, b"\0\1"), (2, (8, 16), 3, b"\0\1\0\2\0\3"),
             (3, (1, 2, 4, 8), 1, b"\x10\x80"), (4, (8, 16), 2, b""), (6, (8, 16), 4, b""))
    for kind, depths, channels, clear in kinds:
        for depth in depths:
            palette = chunk(b"PLTE", rng.bytes(3 << depth)) if kind == 3 else b""
            yield f"png {kind} {depth}", png(13, 9, depth, kind, channels, palette)
            if clear:
                palette += chunk(b"tRNS", clear)
                yield f"png {kind} {depth} tRNS", png(13, 9, depth, kind, channels, palette)
    for mode, channels in (("RGB", 3), ("L", 1), ("RGBA", 4)):
        yield f"png {mode} filtered", encoded("PNG", smooth(40, 33, channels), mode, optimize=True)
    ok, data = cv2.imencode(".png", smooth(29, 31), [cv2.IMWRITE_PNG_COMPRESSION, 9])
    assert ok
    yield "png opencv", data.tobytes()


def bmp(bits, palette=b"", pixels=None, compression=0, masks=b"", header=40, up=1, colours=0):
    width, height = 13, 9
    stride = (width * bits + 31) // 32 * 4
    pixels = rng.bytes(stride * height) if pixels is None else pixels
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, up * height, 1, bits, compression,
                           len(pixels), 2835, 2835, colours, 0)
        info += masks if header == 40 else masks.ljust(header - 40, b"\0")
    start = 14 + len(info) + len(palette)
    return struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start) + info + palette + pixels


def bmps():
    def palette(count, entry=4):
        return b"".join(rng.bytes(3) + bytes(entry - 3) for _ in range(count))

    for bits in (1, 4, 8):
        yield f"bmp {bits}", bmp(bits, palette(1 << bits))
    for bits in (16, 24, 32):
        yield f"bmp {bits}", bmp(bits)
        yield f"bmp {bits} from the top", bmp(bits, up=-1)
    yield "bmp 8 short palette", bmp(8, palette(200), rng.integers(0, 200, 16 * 9, np.uint8).tobytes(),
                                     colours=200)
    yield "bmp os2 24", bmp(24, header=12)
    yield "bmp os2 8", bmp(8, palette(256, 3), header=12)
    for name, masks in (("565", (0xf800, 0x7e0, 0x1f)), ("555", (0x7c00, 0x3e0, 0x1f))):
        yield f"bmp 16 {name}", bmp(16, compression=3, masks=struct.pack("<III", *masks))
    yield "bmp 32 masks", bmp(32, compression=3, masks=struct.pack("<III", 0xff0000, 0xff00, 0xff))
    for name, masks in (("bgra", (0xff0000, 0xff00, 0xff, 0xff000000)),
                        ("rgba", (0xff, 0xff00, 0xff0000, 0xff000000)),
                        ("abgr", (0xff000000, 0xff0000, 0xff00, 0xff))):
        yield f"bmp 32 {name}", bmp(32, compression=3, masks=struct.pack("<IIII", *masks), header=124)
    runs = b"".join(bytes([7, i * 3, 0, 3, 1, 2, 3, 0, 3, 9, 0, 0]) for i in range(9)) + b"\0\1"
    yield "bmp rle8", bmp(8, palette(256), runs, compression=1)
    runs = b"".join(bytes([6, 0x12 * i, 0, 5, 0x12, 0x34, 0x50, 0, 2, 9, 0, 0]) for i in range(9))
    yield "bmp rle4", bmp(4, palette(16), runs + b"\0\1", compression=2)


# ---- What the others make of them -------------------------------------------------------------------------------


def pnms():
    yield "ppm colours", encoded("PPM", smooth(37, 53))
    yield "pgm grey", encoded("PPM", smooth(37, 53, 1), "L")
    yield "ppm comments", b"P6 # of a scanner\n#twice\n 3\t2\n255\n" + bytes(range(40, 58))


def webps():
    for size in ((1, 1), (37, 53), (64, 101)):
        for quality in (5, 75, 100):
            yield f"webp {quality} {size}", encoded("WEBP", smooth(*size), quality=quality)
            yield f"webp {quality} {size} alpha", encoded("WEBP", smooth(*size, 4), "RGBA", quality=quality)
        yield f"webp lossless {size}", encoded("WEBP", smooth(*size), lossless=True)
        yield f"webp lossless {size} alpha", encoded("WEBP", smooth(*size, 4), "RGBA", lossless=True, exact=True)
    yield "webp grey", encoded("WEBP", smooth(61, 83, 1), "L")
    frames = [Image.fromarray(smooth(30, 40)) for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], duration=10, lossless=True)
    yield "webp moving", out.getvalue()


def packed_tiffs():
    """Every kind of compression, by Pillow's libtiff."""
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        yield f"tiff {compression}", encoded("TIFF", smooth(37, 53), compression=compression)
        yield f"tiff {compression} grey", encoded("TIFF", smooth(37, 53, 1), "L", compression=compression)
    yield "tiff predictor", encoded("TIFF", smooth(37, 53), compression="tiff_lzw", tiffinfo={317: 2})
    bits = Image.fromarray(smooth(37, 53, 1).squeeze(2)).convert("1")
    for compression in ("group3", "group4"):
        out = io.BytesIO()
        bits.save(out, "TIFF", compression=compression)
        yield f"tiff {compression}", out.getvalue()


def by_pillow(path, rotate=False, grey=False):
    image = Image.open(path)
    image = ImageOps.exif_transpose(image) if rotate else image
    return np.asarray(image.convert("RGB").convert("L") if grey else image.convert("RGB"))


def by_opencv(path, rotate=False):
    flags = cv2.IMREAD_COLOR | (0 if rotate else cv2.IMREAD_IGNORE_ORIENTATION)
    pixels = cv2.imread(path, flags)
    assert pixels is not None, path
    return pixels[..., ::-1]


class Cases:
    """Lines for the program, and what must come out."""

    def __init__(self, folder):
        self.folder, self.lines, self.names, self.expected = folder, [], [], []

    def add(self, name, path, text, expected):
        self.lines.append(f"{path}\t{text}\t{self.folder}/{len(self.lines)}.npy")
        self.names.append(f"{name} [{text}]")
        self.expected.append(expected)

    def save(self, data, ending):
        path = f"{self.folder}/in{len(self.lines)}{ending}"
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run(self, program):
        done = subprocess.run([program], input="\n".join(self.lines) + "\n", text=True,
                              capture_output=True, check=True)
        answers, wrong = done.stdout.splitlines(), 0
        assert len(answers) == len(self.lines)
        for i, (name, answer, expected) in enumerate(zip(self.names, answers, self.expected)):
            fault = answer if answer != "ok" else compare(np.load(f"{self.folder}/{i}.npy"), expected)
            if fault:
                print(f"{name}: {fault}")
                wrong += 1
        print(f"{len(answers)} pictures, {wrong} wrong")
        return wrong


def compare(ours, theirs):
    theirs = theirs.reshape(theirs.shape[0], theirs.shape[1], -1)
    if ours.shape[2] < theirs.shape[2]:
        ours = np.repeat(ours, theirs.shape[2], axis=2)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    different = ours != theirs
    return f"{different.sum()} of {ours.size} numbers differ" if different.any() else None


# ---- The cases ---------------------------------------------------------------------------------------------------


def add_files(cases, kinds):
    files = [(name, data, "PO") for name, data in (*jpegs(), *pngs(), *bmps(), *pnms())]
    if "webp" in kinds:
        files += [(name, data, "PO") for name, data in webps()]
    if "tiff" in kinds:
        files += [*tiffs.cases(rng), *((name, data, "PO") for name, data in packed_tiffs())]
    for name, data, readers in files:
        path = cases.save(data, "." + name.split()[0])
        if "P" in readers:
            cases.add(name, path, "", by_pillow(path))
        if "O" not in readers:
            continue
        cases.add(name, path, "decode=opencv", by_opencv(path))
        if "16" not in name:
            cases.add(name, path, "grey", by_pillow(path, grey=True))
            colour = np.ascontiguousarray(by_opencv(path)[..., ::-1])
            cases.add(name, path, "grey,decode=opencv", cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY))


def add_rotations(cases, kinds):
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        for form in ("JPEG", "PNG") + (("WEBP",) if "webp" in kinds else ()):
            path = cases.save(encoded(form, smooth(21, 34), exif=exif), "." + form.lower())
            cases.add(f"{form} turned {orientation}", path, "rotate", by_pillow(path, rotate=True))
            cases.add(f"{form} turned {orientation}", path, "", by_pillow(path))
        path = cases.save(encoded("JPEG", smooth(21, 34), exif=exif), ".jpeg")
        cases.add(f"turned {orientation}", path, "rotate,decode=opencv", by_opencv(path, True))


def add_sizes(cases, count):
    for i in range(count):
        height, width, to_height, to_width = (int(n) for n in rng.integers(1, 130, 4))
        if i % 8 == 0:
            height, width = 2 * to_height, 2 * to_width
        if i % 8 == 1:
            to_width = width
        if i % 8 == 2:
            to_height = height
        pixels = rng.integers(0, 256, (height, width, 1 if i % 3 == 0 else 3), dtype=np.uint8)
        path = cases.save(encoded("PNG", pixels, "L" if i % 3 == 0 else "RGB"), ".png")
        image = Image.fromarray(pixels.squeeze(2) if i % 3 == 0 else pixels)
        text = f"resize={to_height}x{to_width}"
        cases.add(f"{height}x{width}", path, text + ":pillow-bilinear",
                  np.asarray(image.resize((to_width, to_height), Image.BILINEAR)))
        cases.add(f"{height}x{width}", path, text + ":opencv-linear",
                  cv2.resize(pixels, (to_width, to_height), interpolation=cv2.INTER_LINEAR))


def letterboxed(image, size, centred):
    scale = size / max(image.size)
    width, height = (round(side * scale) for side in image.size)
    left, top = ((size - width) // 2, (size - height) // 2) if centred else (0, 0)
    canvas = Image.new("RGB", (size, size), (114, 114, 114))
    canvas.paste(image.resize((width, height), Image.BILINEAR), (left, top))
    return np.asarray(canvas)


def add_photographs(cases):
    for path in sorted(glob.glob(os.path.join(DATA, "coco", "images", "*.jpg")))[:24]:
        image = Image.open(path).convert("RGB")
        cases.add(path, path, "", np.asarray(image))
        cases.add(path, path, "decode=opencv", by_opencv(path))
        cases.add(path, path, "letterbox=640:centre,fill=114", letterboxed(image, 640, True))
        cases.add(path, path, "letterbox=416:top-left,fill=114", letterboxed(image, 416, False))
        cases.add(path, path, "resize=299x311:opencv-linear",
                  cv2.resize(np.asarray(image), (311, 299), interpolation=cv2.INTER_LINEAR))
        short = image.resize(tuple(int(160 * s / min(image.size)) for s in image.size), Image.BILINEAR)
        left, top = (short.width - 128) // 2, (short.height - 128) // 2
        cropped = np.asarray(short.crop((left, top, left + 128, top + 128))).astype(np.float32)
        numbers = (cropped[..., ::-1] - np.float32((103.939, 116.779, 123.68))) / np.float32(2)
        cases.add(path, path, "resize=160,crop=128,bgr,mean=103.939/116.779/123.68,std=2", numbers)


def add_words(cases):
    for path in sorted(glob.glob(os.path.join(DATA, "ocr", "images", "*.png")))[:40]:
        grey = np.asarray(Image.open(path).convert("L")).astype(np.float32)
        padded = np.zeros((48, 320), np.float32)
        padded[:, :grey.shape[1]] = (grey[:, :320] - np.float32(127.5)) / np.float32(127.5)
        cases.add(path, path, "ppocr", padded)


def add_fills(cases):
    pixels = smooth(20, 40)
    path = cases.save(encoded("PNG", pixels), ".png")
    box = np.full((50, 50, 3), (30, 20, 10), np.uint8)
    box[:25] = np.asarray(Image.fromarray(pixels).resize((50, 25), Image.BILINEAR))
    cases.add("fill", path, "letterbox=50:top-left,bgr,fill=10/20/30", box[..., ::-1])
    cases.add("in proportion", path, "resize=10x",
              np.asarray(Image.fromarray(pixels).resize((20, 10), Image.BILINEAR)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(folder)
        add_files(cases, sys.argv[2:])
        add_rotations(cases, sys.argv[2:])
        add_sizes(cases, 200)
        add_photographs(cases)
        add_words(cases)
        add_fills(cases)
        return 1 if cases.run(sys.argv[1]) else 0


if __name__ == "__main__":
    sys.exit(main())
