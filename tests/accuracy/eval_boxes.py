"""eval_boxes.py MODEL: quench eval --task detection beside what is known of the model, and beside pycocotools on the
boxes that it found; with the float model alone and, without labels, the float model against itself."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import coco_oracle  # noqa: E402
import models  # noqa: E402

COCO = os.path.join(models.DATA, "coco")
# The measurement that is known kept scores above 0.01 and 100 boxes a picture.
CASES = {"yolov8n": (.617, .449), "yolox_nano": (.527, .346)}
# What is known has three digits; other limits of score and number of boxes than those move it by up to 0.005; both
# programs add up the same boxes.
SAME, USUAL, AGREE = 0.0006, 0.005, 1e-4


def evaluate(name, *options):
    done = subprocess.run([models.QUENCH, "eval", models.path_of(name), "--task", "detection",
                           "-d", os.path.join(COCO, "images"), "--data-list", os.path.join(COCO, "val.txt"),
                           "--preprocess", models.STEPS[name], "--json", *options],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["models"]


def read_boxes(path, size):
    """Rows of a label file: class, [x, y, width, height] in pixels, score."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            word = [float(w) for w in line.split()]
            cx, cy, w, h = (a * b for a, b in zip(word[1:5], size * 2))
            yield int(word[0]), [cx - w / 2, cy - h / 2, w, h], word[5] if len(word) > 5 else None


def by_pycocotools(folder):
    """The boxes that were saved, against the labels."""
    with open(os.path.join(COCO, "val.txt"), encoding="utf-8") as file:
        names = file.read().split()
    truth, results = {"images": [], "annotations": [], "categories": [{"id": i} for i in range(80)]}, []
    for i, name in enumerate(names):
        size = Image.open(os.path.join(COCO, "images", name + ".jpg")).size
        truth["images"].append({"id": i})
        for kind, box, _ in read_boxes(os.path.join(COCO, "labels", name + ".txt"), size):
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": i, "category_id": kind,
                                         "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
        for kind, box, score in read_boxes(os.path.join(folder, name + ".txt"), size):
            results.append({"image_id": i, "category_id": kind, "bbox": box, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        return coco_oracle.precision(truth, results)


def check(what, row, expected, most):
    got = (row["map50"], row["map50_95"])
    far = max(abs(a - b) for a, b in zip(got, expected))
    print(f"{what}: {got[0]:.5f} {got[1]:.5f}, expected {expected[0]:.5f} {expected[1]:.5f}, within {most}")
    return far <= most


def main():
    name = sys.argv[1]
    reason = models.missing() or (None if coco_oracle.there() else "pycocotools is not installed")
    if reason:
        print("skipped:", reason)
        return 77
    labels = ["--labels", os.path.join(COCO, "labels")]
    if models.SANITIZED:
        rows = evaluate(name, "--float", models.path_of(name), "--samples", "2")
        return 0 if check("without labels", rows[0], (1, 1), 0) else 1
    with tempfile.TemporaryDirectory() as folder:
        rows = evaluate(name, *labels, "--save-labels", folder, "--draw-conf", "0")
        good = check("as usual", rows[0], CASES[name], USUAL)
        good &= check("beside pycocotools", rows[0], by_pycocotools(folder), AGREE)
    rows = evaluate(name, *labels, "--conf-thres", "0.01", "--max-det", "100")
    good &= check("as it was measured", rows[0], CASES[name], SAME)
    rows = evaluate(name, "--float", models.path_of(name), "--samples", "8")
    good &= check("without labels", rows[0], (1, 1), 0)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
