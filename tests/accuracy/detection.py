"""detection.py: boxes out of YOLO's outputs, and their mean average precision."""

import numpy as np

LEAST_SCORE, OVERLAP, MOST_BOXES = 0.01, 0.6, 100
LIMITS = np.arange(0.5, 0.96, 0.05)


def overlaps(box, others):
    """Intersection over union of one box with many; x0, y0, x1, y1."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    area = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1)
    return both / np.maximum(area - both, 1e-9)


def suppress(boxes, scores):
    """Indices of the boxes that no better one of the same class covers."""
    kept, order = [], np.argsort(-scores, kind="stable")
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        order = order[overlaps(boxes[best], boxes[order]) <= OVERLAP]
    return kept


def detections(boxes, scores):
    """Rows of class, score, x0, y0, x1, y1. boxes (n, 4), scores (n, classes)."""
    rows = []
    for kind in np.unique(np.nonzero(scores > LEAST_SCORE)[1]):
        some = np.nonzero(scores[:, kind] > LEAST_SCORE)[0]
        kept = some[suppress(boxes[some], scores[some, kind])]
        rows += [(kind, scores[i, kind], *boxes[i]) for i in kept]
    rows.sort(key=lambda row: -row[1])
    return np.array(rows[:MOST_BOXES]).reshape(-1, 6)


def to_corners(centres, sizes):
    return np.hstack([centres - sizes / 2, centres + sizes / 2])


def yolov8(output):
    """(84, 8400): centre, size, 80 scores."""
    rows = output.T.astype(np.float64)
    return to_corners(rows[:, :2], rows[:, 2:4]), rows[:, 4:]


def yolox(output, size=416):
    """(3549, 85): offsets in cells, log sizes, objectness, 80 scores."""
    grids = []
    for stride in (8, 16, 32):
        y, x = np.mgrid[:size // stride, :size // stride]
        grids.append(np.stack([x.ravel(), y.ravel(), np.full(x.size, stride)], axis=1))
    grid = np.concatenate(grids)
    rows, stride = output.astype(np.float64), grid[:, 2:]
    boxes = to_corners((rows[:, :2] + grid[:, :2]) * stride, np.exp(rows[:, 2:4]) * stride)
    return boxes, rows[:, 4:5] * rows[:, 5:]


def average_precision(hits, truths):
    """Area under precision over recall at 101 points; hits in order of falling score."""
    true = np.cumsum(hits)
    precision = true / np.arange(1, len(hits) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(true / truths, np.linspace(0, 1, 101), side="left")
    return np.where(at < len(best), best[np.minimum(at, len(best) - 1)], 0).mean() if len(hits) else 0


def match(found, truth, limit):
    """Which found boxes (best first) hit a box of the image that no better one has taken."""
    free, hits = np.ones(len(truth), bool), np.zeros(len(found))
    for i, box in enumerate(found):
        overlap = np.where(free, overlaps(box, truth), -1) if len(truth) else np.zeros(0)
        if len(overlap) and overlap.max() >= limit:
            hits[i] = 1
            free[overlap.argmax()] = False
    return hits


def mean_average_precision(found, truth):
    """(mAP50, mAP50-95). found: per image detections(); truth: per image class, x0, y0, x1, y1."""
    table = []
    for kind in np.unique(np.concatenate([t[:, 0] for t in truth])):
        row = []
        for limit in LIMITS:
            scores, hits, count = [], [], 0
            for f, t in zip(found, truth):
                mine, wanted = f[f[:, 0] == kind], t[t[:, 0] == kind][:, 1:]
                scores.append(mine[:, 1])
                hits.append(match(mine[:, 2:], wanted, limit))
                count += len(wanted)
            order = np.argsort(-np.concatenate(scores), kind="stable")
            row.append(average_precision(np.concatenate(hits)[order], count))
        table.append(row)
    table = np.array(table)
    return table[:, 0].mean(), table.mean()
