"""coco_oracle.py: mean average precision by pycocotools."""


def there():
    try:
        import pycocotools.cocoeval  # noqa: F401
    except ImportError:
        return False
    return True


def precision(truth, results, most=100):
    """(mAP50, mAP50-95) of results, dicts as COCO's; -1 where there is nothing to find."""
    import numpy as np
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
    known = COCO()
    known.dataset = truth
    known.createIndex()
    found = known.loadRes(results) if results else COCO()
    if not results:
        found.dataset = dict(truth, annotations=[])
        found.createIndex()
    job = COCOeval(known, found, "bbox")
    job.params.maxDets = [1, most, most] if most < 10 else [1, 10, most]
    job.evaluate()
    job.accumulate()
    table = job.eval["precision"][:, :, :, 0, -1]  # [limits][recalls][classes]
    means = [float(np.mean(t[t > -1])) if (t > -1).any() else -1.0 for t in (table[0], table)]
    return means
