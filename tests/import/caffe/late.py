"""late.py: further networks of nets.py: Faster R-CNN, recurrent layers, and layers of single projects."""

import numpy as np

from nets import average, case, inputs_text, layer, one, pool, rand, y_of

# ---- Faster R-CNN -------------------------------------------------------------------------------------------------------


def anchors(ratios, scales, base=16):
    """Those of py-faster-rcnn: at each ratio, each scale."""
    found = []
    for ratio in ratios:
        w = np.rint(np.sqrt(base * base / ratio))
        h = np.rint(w * ratio)
        found += [[(base - 1 - (w * s - 1)) / 2, (base - 1 - (h * s - 1)) / 2, (base - 1 + w * s - 1) / 2, (base - 1 + h * s - 1) / 2]
                  for s in scales]
    return np.array(found)


def suppress(boxes, scores, overlap):
    """Which boxes remain, the best first; pixels are counted."""
    order, kept = list(np.argsort(-scores, kind="stable")), []
    area = (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)
    while order:
        best = order.pop(0)
        kept.append(best)
        rest = np.array(order, int)
        w = np.minimum(boxes[best, 2], boxes[rest, 2]) - np.maximum(boxes[best, 0], boxes[rest, 0]) + 1
        h = np.minimum(boxes[best, 3], boxes[rest, 3]) - np.maximum(boxes[best, 1], boxes[rest, 1]) + 1
        both = np.maximum(w, 0) * np.maximum(h, 0)
        order = list(rest[both / (area[best] + area[rest] - both) <= overlap])
    return kept


def propose(i, ratios, scales, smallest, before, after, overlap):
    scores, moves, info = i["s"], i["d"].astype(np.float64), i["i"][0]
    base = anchors(ratios, scales)
    count, height, width = len(base), *scores.shape[2:]
    y, x = np.mgrid[:height, :width] * 16
    all_anchors = (base[None] + np.stack([x, y, x, y], 2).reshape(-1, 1, 4)).reshape(-1, 4)
    scores = scores[0, count:].transpose(1, 2, 0).reshape(-1)
    moves = moves[0].transpose(1, 2, 0).reshape(-1, 4)
    size = all_anchors[:, 2:] - all_anchors[:, :2] + 1
    centre = moves[:, :2] * size + all_anchors[:, :2] + size / 2
    half = np.exp(moves[:, 2:]) * size / 2
    limit = np.array([info[1], info[0]]) - 1
    boxes = np.concatenate([np.clip(centre - half, 0, limit), np.clip(centre + half, 0, limit)], 1)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= smallest * info[2]).all(1)
    boxes, scores = boxes[large], scores[large]
    order = np.argsort(-scores, kind="stable")[:before]
    boxes, scores = boxes[order], scores[order]
    kept = suppress(boxes, scores, overlap)[:after]
    return np.concatenate([np.zeros((len(kept), 1)), boxes[kept]], 1), scores[kept][:, None]


HEAD = {"s": (1, 18, 4, 5), "d": (1, 36, 4, 5), "i": (1, 3)}
NUMBERS = {"s": np.random.RandomState(3).permutation(360).reshape(1, 18, 4, 5).astype(np.float32) / 360, "d": rand("pd", *HEAD["d"]) / 2,
           "i": np.array([[64, 80, 1]], np.float32)}
# OpenCV clips and rounds otherwise: the formula is py-faster-rcnn's.
case("proposal", layer("Proposal", "s d i", "y p", """proposal_param { feat_stride: 16 base_size: 16 min_size: 16 ratio: 0.5 ratio: 1 ratio: 2
    scale: 1 scale: 2 scale: 4 pre_nms_topn: 50 post_nms_topn: 12 nms_thresh: 0.6 }"""), HEAD, inputs=NUMBERS, outputs=["y", "p"],
     oracle="formula", formula=lambda i: dict(zip("yp", propose(i, (0.5, 1, 2), (1, 2, 4), 16, 50, 12, 0.6))))
PYTHON = "python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' param_str: \"'feat_stride': 16\" }"
case("proposal_python", layer("Python", "s d i", "y", PYTHON), HEAD, inputs=NUMBERS, oracle="formula",
     formula=lambda i: {"y": propose(i, (0.5, 1, 2), (8, 16, 32), 16, 6000, 300, 0.7)[0]})
BOXES = np.array([[0, 0, 0, 40, 30], [0, 16, 8, 63, 40], [0, 20, 20, 22, 21], [0, 3, 11, 50, 63]], np.float32)
case("roi_pooling", layer("ROIPooling", "x r", "y", "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.125 }"),
     {"x": (1, 2, 8, 8), "r": (4, 5)}, inputs={"x": rand("rp", 1, 2, 8, 8), "r": BOXES})

# ---- Recurrent layers ---------------------------------------------------------------------------------------------------

STEPS = np.array([[0, 0], [1, 1], [1, 0], [1, 1], [0, 1]], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, cont, w, b, back, fixed=0):
    h = c = np.zeros((x.shape[1], back.shape[1]))
    out = []
    for step, go_on in zip(x, cont):
        gates = step @ w.T + b + fixed + (h * go_on[:, None]) @ back.T
        i, f, o, g = np.split(gates, 4, 1)
        c = go_on[:, None] * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.array(out)


def rnn(x, cont, w, b, back, wo, bo):
    h, out = np.zeros((x.shape[1], back.shape[0])), []
    for step, go_on in zip(x, cont):
        h = np.tanh(step @ w.T + b + (h * go_on[:, None]) @ back.T)
        out.append(np.tanh(h @ wo.T + bo))
    return np.array(out)


L = [rand("lw", 12, 4), rand("lb", 12), rand("lh", 12, 3)]
LS = [L[0], L[1], rand("ls", 12, 2), L[2]]
R = [rand("rw", 3, 4), rand("rb", 3), rand("rh", 3, 3), rand("ro", 3, 3), rand("rc", 3)]
SEQUENCE = {"x": (5, 2, 4), "c": (5, 2)}
GIVEN = {"x": rand("seq", 5, 2, 4), "c": STEPS}
case("lstm", layer("LSTM", "x c", "y", "recurrent_param { num_output: 3 }"), SEQUENCE, [("y", "LSTM", L)], inputs=GIVEN,
     oracle="formula", formula=lambda i: {"y": lstm(i["x"], i["c"], *L)})
case("lstm_static", layer("LSTM", "x c s", "y", "recurrent_param { num_output: 3 }"), {**SEQUENCE, "s": (2, 2)}, [("y", "LSTM", LS)],
     inputs={**GIVEN, "s": rand("sta", 2, 2)}, oracle="formula",
     formula=lambda i: {"y": lstm(i["x"], i["c"], *L, i["s"] @ LS[2].T)})
case("lstm_whole", layer("ContinuationIndicator", "", "c", "continuation_indicator_param { time_step: 5 batch_size: 2 }", "c") +
     layer("LSTM", "x c", "y", "recurrent_param { num_output: 3 }"), (5, 2, 4), [("y", "LSTM", L)], oracle="formula",
     formula=y_of(lambda x: lstm(x, np.ones((5, 2)), *L)))
case("rnn", layer("RNN", "x c", "y", "recurrent_param { num_output: 3 }"), SEQUENCE, [("y", "RNN", R)], inputs=GIVEN,
     oracle="formula", formula=lambda i: {"y": rnn(i["x"], i["c"], *R)})
case("dummy_data", 'layer { name: "c" type: "DummyData" top: "c" dummy_data_param { shape { dim: 5 dim: 2 } data_filler { type: "constant" '
     'value: 1 } } }\n' + layer("LSTM", "x c", "y", "recurrent_param { num_output: 3 }"), (5, 2, 4), [("y", "LSTM", L)], oracle="formula",
     formula=y_of(lambda x: lstm(x, np.ones((5, 2)), *L)))

# ---- Others -------------------------------------------------------------------------------------------------------------


def pyramid(x, levels, take):
    parts = []
    for level in range(levels):
        bins = 2 ** level
        kernel = -(-x.shape[2] // bins)
        parts.append(pool(x, kernel, kernel, (kernel * bins - x.shape[2] + 1) // 2, (bins, bins), take).reshape(len(x), -1))
    return np.concatenate(parts, 1)


# OpenCV pools to other parts.
one("spp", "SPP", (2, 3, 7, 7), "spp_param { pool: MAX pyramid_height: 3 }", oracle="formula",
    formula=y_of(lambda x: pyramid(x, 3, lambda w, _: w.max((2, 3)))))
one("spp_average", "SPP", (1, 2, 8, 8), "spp_param { pool: AVE pyramid_height: 2 }", oracle="formula",
    formula=y_of(lambda x: pyramid(x, 2, average)))


def windows(x, kernel, stride):
    """[channels * kernel * kernel] of each place."""
    n, c, h, w = x.shape
    return np.array([[x[:, :, i:i + kernel, k:k + kernel].reshape(n, -1) for k in range(0, w - kernel + 1, stride)]
                     for i in range(0, h - kernel + 1, stride)]).transpose(2, 3, 0, 1)


one("im2col", "Im2col", (1, 3, 6, 6), "convolution_param { kernel_size: 3 stride: 2 pad: 1 }", oracle="formula",
    formula=y_of(lambda x: windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), 3, 2)))
case("parameter", layer("Parameter", "", "p", "parameter_param { shape { dim: 2 dim: 3 } }") +
     layer("Eltwise", "x p", "y", "eltwise_param { operation: PROD }"), (2, 3), [("p", "Parameter", [rand("par", 2, 3)])],
     oracle="formula", formula=y_of(lambda x: x * rand("par", 2, 3)))
case("axpy", layer("Axpy", "a x z", "y"), {"a": (2, 3), "x": (2, 3, 4, 4), "z": (2, 3, 4, 4)}, oracle="formula",
     formula=lambda i: {"y": i["a"][..., None, None] * i["x"] + i["z"]})


def places(x):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    at = blocks.argmax(-1)
    y, x_ = np.mgrid[:h // 2, :w // 2] * 2
    return blocks.max(-1), (y + at // 2) * w + x_ + at % 2


def unpooled(x):
    top, at = places(x)
    y = np.zeros_like(x).reshape(*x.shape[:2], -1)
    np.put_along_axis(y, at.reshape(*at.shape[:2], -1), 2 * top.reshape(*top.shape[:2], -1), 2)
    return y.reshape(x.shape)


case("pool_places", layer("Pooling", "x", "t p", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }"), (2, 2, 4, 6),
     outputs=["t", "p"], oracle="formula", formula=lambda i: dict(zip("tp", places(i["x"]))))
case("upsample_places", layer("Pooling", "x", "t p", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }") +
     layer("Power", "t", "t", "power_param { scale: 2 }", "twice") + layer("Upsample", "t p", "y", "upsample_param { scale: 2 }"),
     (2, 2, 4, 6), head=inputs_text({"x": (2, 2, 4, 6)}), oracle="formula", formula=y_of(unpooled))
