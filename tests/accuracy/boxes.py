"""boxes.py PROGRAM: mean average precision beside pycocotools, on boxes made up with crowds, ties, objects that
nobody finds, boxes where nothing is, and pictures without any of them."""

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile

import coco_oracle


def near(rng, box):
    """A box that overlaps this one, from not at all to exactly."""
    x, y, w, h = box
    spread = rng.choice([0, 0, .05, .2, .6])
    return [x + spread * w * rng.uniform(-1, 1), y + spread * h * rng.uniform(-1, 1),
            w * (1 + spread * rng.uniform(-.5, .5)), h * (1 + spread * rng.uniform(-.5, .5))]


def some_box(rng, whole):
    number = (lambda a, b: float(rng.randint(a, b))) if whole else rng.uniform
    return [number(0, 400), number(0, 300), number(1, 200), number(1, 150)]


def make_case(rng):
    """(COCO's truth, found boxes as COCO has results)"""
    categories = sorted(rng.sample(range(1, 91), rng.randint(1, 6)))
    pictures = [{"id": 7 * i + 3, "file_name": f"{i:04}.jpg", "width": 640, "height": 480}
                for i in range(rng.randint(1, 25))]
    whole, digits = rng.random() < .5, rng.choice([1, 2, 9])
    truth, found = [], []
    for picture in pictures:
        boxes = [(rng.choice(categories), some_box(rng, whole), int(rng.random() < .15))
                 for _ in range(rng.choice([0, 0, 1, 3, 8, 20]))]
        for category, box, crowd in boxes:
            truth.append({"id": len(truth) + 1, "image_id": picture["id"], "category_id": category, "bbox": box,
                          "area": box[2] * box[3], "iscrowd": crowd})
            for _ in range(rng.choice([0, 1, 1, 1, 2, 5 if crowd else 1])):
                kind = category if rng.random() < .9 else rng.choice(categories)
                found.append((picture["id"], kind, near(rng, box)))
        for _ in range(rng.choice([0, 1, 4, 60])):
            found.append((picture["id"], rng.choice(categories), some_box(rng, whole)))
    results = [{"image_id": i, "category_id": c, "bbox": b, "score": round(rng.random(), digits)} for i, c, b in found]
    return {"images": pictures, "annotations": truth,
            "categories": [{"id": c, "name": f"class {c}"} for c in categories]}, results


def ours(program, folder, truth, results, most):
    path = os.path.join(folder, "labels.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(truth, file)
    place = {c["id"]: i for i, c in enumerate(sorted(truth["categories"], key=lambda c: c["id"]))}
    lines = []
    for picture in truth["images"]:
        lines.append(f"picture {picture['file_name']} 640 480")
        lines += [f"{place[r['category_id']]} {r['score']!r} " + " ".join(map(repr, r["bbox"]))
                  for r in results if r["image_id"] == picture["id"]]
    done = subprocess.run([program, path, str(most)], input="\n".join(lines) + "\n", check=True,
                          capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()[:2]]


def main():
    if not coco_oracle.there():
        print("skipped: pycocotools is not installed")
        return 77
    worst, measured = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(60):
            truth, results = make_case(random.Random(seed))
            most = random.Random(seed).choice([100, 100, 3])
            with contextlib.redirect_stdout(io.StringIO()):
                theirs = coco_oracle.precision(truth, results, most)
            own = ours(sys.argv[1], folder, truth, results, most)
            if theirs[1] < 0:  # no class has a true box
                if own[0] == own[0]:
                    print(f"seed {seed}: {own}, though there is nothing to find")
                    return 1
                continue
            measured += 1
            worst = max(worst, *(abs(a - b) for a, b in zip(own, theirs)))
            if worst > 1e-4:
                print(f"seed {seed}: ours {own}, pycocotools {theirs}")
                return 1
    print(f"{measured} cases, largest difference {worst:.2e}")
    return 0 if measured > 40 else 1


if __name__ == "__main__":
    sys.exit(main())
