"""more.py: further networks of nets.py: layers that move numbers, detection, and the forms of files."""

import numpy as np

from nets import case, conv, inputs_text, layer, one, rand, y_of

# ---- Layers that move numbers -------------------------------------------------------------------------------------------

case("concat", layer("Concat", "x z", "y", "concat_param { axis: 2 }"), {"x": (2, 3, 4), "z": (2, 3, 2)})
case("concat_dim", layer("Concat", "x z", "y", "concat_param { concat_dim: 1 }"), {"x": (2, 3, 4, 4), "z": (2, 2, 4, 4)})
case("slice", layer("Slice", "x", "a b c", "slice_param { axis: 1 slice_point: 1 slice_point: 4 }"), (2, 6, 3), outputs=["a", "b", "c"],
     oracle="formula", formula=lambda i: {"a": i["x"][:, :1], "b": i["x"][:, 1:4], "c": i["x"][:, 4:]})
case("slice_equal", layer("Slice", "x", "a b", "slice_param { slice_dim: 2 }"), (2, 3, 4), outputs=["a", "b"], oracle="formula",
     formula=lambda i: {"a": i["x"][:, :, :2], "b": i["x"][:, :, 2:]})
case("split", layer("Split", "x", "a b") + layer("AbsVal", "a", "c") + layer("Sigmoid", "b", "d"), (2, 3, 4), outputs=["c", "d"])
one("flatten", "Flatten", (2, 3, 4, 5))
one("flatten_axes", "Flatten", (2, 3, 4, 5), "flatten_param { axis: 1 end_axis: 2 }")
one("reshape", "Reshape", (2, 3, 4, 5), "reshape_param { shape { dim: 0 dim: -1 dim: 10 } }")
one("reshape_axis", "Reshape", (2, 3, 4, 5), "reshape_param { shape { dim: 2 dim: -1 } axis: 1 num_axes: 2 }")
one("permute", "Permute", (2, 3, 4, 5), "permute_param { order: 0 order: 2 order: 3 order: 1 }")
one("permute_some", "Permute", (2, 3, 4), "permute_param { order: 2 }", oracle="formula", formula=y_of(lambda x: x.transpose(2, 0, 1)))
case("crop", layer("Crop", "x z", "y", "crop_param { axis: 2 offset: 1 offset: 3 }"), {"x": (1, 2, 6, 8), "z": (1, 2, 4, 4)})
case("crop_one", layer("Crop", "x z", "y", "crop_param { axis: 1 offset: 1 }"), {"x": (1, 4, 6, 8), "z": (1, 2, 4, 4)})
# OpenCV has Tile for ONNX only.
one("tile", "Tile", (2, 3, 4), "tile_param { axis: 1 tiles: 3 }", oracle="formula", formula=y_of(lambda x: np.tile(x, (1, 3, 1))))
one("shuffle_channel", "ShuffleChannel", (2, 6, 3, 4), "shuffle_channel_param { group: 3 }")
case("batch_reindex", layer("BatchReindex", "x z", "y"), {"x": (3, 2, 4), "z": (5,)}, oracle="formula",
     inputs={"x": rand("bri", 3, 2, 4), "z": np.array([2, 0, 0, 1, 2], np.float32)}, formula=lambda i: {"y": i["x"][i["z"].astype(int)]})
case("dropout_silence", layer("Dropout", "x", "y", "dropout_param { dropout_ratio: 0.4 }") +
     layer("AbsVal", "x", "a") + '\nlayer { name: "quiet" type: "Silence" bottom: "a" }\n', (2, 3), oracle="formula",
     formula=y_of(lambda x: x))
one("softmax", "Softmax", (2, 5, 3))
one("softmax_axis", "Softmax", (2, 3, 4, 5), "softmax_param { axis: -1 }")
for operation, function in (("SUM", np.sum), ("ASUM", lambda a, axis: np.abs(a).sum(axis)), ("SUMSQ", lambda a, axis: (a * a).sum(axis)),
                            ("MEAN", np.mean)):
    # OpenCV has its reductions for ONNX only.
    one("reduction_" + operation.lower(), "Reduction", (2, 3, 4, 5), f"reduction_param {{ operation: {operation} axis: 2 coeff: 0.5 }}",
        oracle="formula", formula=y_of(lambda x, f=function: 0.5 * f(x, axis=(2, 3))))


def largest(x, count):
    order = np.argsort(-x, 1)[:, :count]
    return order[:, None].astype(float), np.take_along_axis(x, order, 1)[:, None]


# OpenCV has ArgMax for ONNX only.
one("argmax", "ArgMax", (3, 4, 5), "", oracle="formula", formula=y_of(lambda x: largest(x.reshape(3, 20), 1)[0]))
one("argmax_values", "ArgMax", (3, 20), "argmax_param { out_max_val: true top_k: 3 }", oracle="formula",
    formula=y_of(lambda x: np.concatenate(largest(x, 3), 1)))
one("argmax_axis", "ArgMax", (2, 5, 3, 4), "argmax_param { axis: 1 }", oracle="formula", formula=y_of(lambda x: x.argmax(1)[:, None]))
one("interp", "Interp", (1, 2, 5, 6), "interp_param { height: 9 width: 7 }")
one("interp_zoom", "Interp", (1, 2, 4, 5), "interp_param { zoom_factor: 3 }")


def bilinear(x, height, width):
    """Between the corners."""
    ys, xs = np.linspace(0, x.shape[2] - 1, height), np.linspace(0, x.shape[3] - 1, width)
    top, left = np.minimum(ys.astype(int), x.shape[2] - 2), np.minimum(xs.astype(int), x.shape[3] - 2)
    v, u = (ys - top)[:, None], xs - left
    a, b = x[:, :, top], x[:, :, top + 1]
    return (a[..., left] * (1 - u) + a[..., left + 1] * u) * (1 - v) + (b[..., left] * (1 - u) + b[..., left + 1] * u) * v


# OpenCV has neither the cut nor the second bottom.
one("interp_cut", "Interp", (1, 2, 9, 8), "interp_param { shrink_factor: 2 pad_beg: -1 pad_end: 0 }", oracle="formula",
    formula=y_of(lambda x: bilinear(x[:, :, 1:, 1:], 4, 4)))
case("interp_two", layer("Interp", "x z", "y"), {"x": (1, 2, 5, 5), "z": (1, 1, 8, 3)}, oracle="formula",
     formula=lambda i: {"y": bilinear(i["x"], 8, 3)})
one("upsample", "Upsample", (1, 2, 3, 4), "upsample_param { scale: 2 }", oracle="formula",
    formula=y_of(lambda x: x.repeat(2, 2).repeat(2, 3)))

# ---- SSD ----------------------------------------------------------------------------------------------------------------

PRIOR = """prior_box_param { min_size: 20 max_size: 40 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: true
    variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 %s }"""
case("prior_box", layer("PriorBox", "f x", "y", PRIOR % "offset: 0.5"), {"f": (1, 2, 3, 4), "x": (1, 3, 60, 80)})
case("prior_box_step", layer("PriorBox", "f x", "y", """prior_box_param { min_size: 10 min_size: 30 max_size: 20 max_size: 50
    aspect_ratio: 2 flip: false clip: false variance: 0.1 step: 16 }"""), {"f": (1, 2, 3, 4), "x": (1, 3, 60, 80)})


def detection_case(name, params, batch=1, places=(3, 4), shared=True, code="CENTER_SIZE", **more):
    """A head of three classes with six boxes at each place, made of the inputs loc and conf."""
    boxes = 6 * places[0] * places[1]
    body = layer("PriorBox", "f x", "prior", PRIOR % "offset: 0.5")
    body += layer("Softmax", "conf", "prob", "softmax_param { axis: 2 }") + layer("Flatten", "prob", "flat")
    body += layer("DetectionOutput", "loc flat prior", "y", f"""detection_output_param {{ num_classes: 3
    share_location: {"true" if shared else "false"} background_label_id: 0 code_type: {code} {params} }}""")
    shapes = {"f": (1, 1, *places), "x": (1, 3, 60, 80), "loc": (batch, boxes * 4 * (1 if shared else 3)), "conf": (batch, boxes, 3)}
    scaled = {key: rand(name + key, *dims) * (3 if key == "conf" else 1) for key, dims in shapes.items()}
    case(name, body, shapes, inputs=scaled, **more)


NMS = "nms_param { nms_threshold: 0.45 top_k: 400 } keep_top_k: 20 confidence_threshold: 0.3"
detection_case("detection_output", NMS)
detection_case("detection_output_top", "nms_param { nms_threshold: 0.45 top_k: 10 } keep_top_k: 12 confidence_threshold: 0.01")
detection_case("detection_output_corner", NMS, code="CORNER")
detection_case("detection_output_classes", NMS, shared=False)
detection_case("detection_output_batch", NMS, batch=3)
# OpenCV wants priors of another shape then; with variances of 1 it computes the same.
detection_case("detection_output_target", NMS + " variance_encoded_in_target: true", swap=[
    (" variance_encoded_in_target: true", ""), ("variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2", "variance: 1")])

# ---- Forms of files -----------------------------------------------------------------------------------------------------

BODY = layer("Convolution", "x", "c", "convolution_param { num_output: 4 kernel_size: 3 }") + layer("ReLU", "c", "c", name="r") + \
    layer("InnerProduct", "c", "y", "inner_product_param { num_output: 3 }")
WEIGHTS = [("c", "Convolution", [rand("fw", 4, 2, 3, 3), rand("fb", 4)]), ("y", "InnerProduct", [rand("fi", 3, 64), rand("fj", 3)])]
for how in ("legacy", "raw", "half", "double", "unpacked", "h5"):
    # OpenCV reads raw data as FLOAT16 only, and neither double_data nor HDF5.
    more = {"oracle": "formula"} if how in ("raw", "half", "double", "h5") else {}
    rounded = (lambda a: a.astype(np.float16).astype(np.float64)) if how == "half" else (lambda a: a.astype(np.float64))
    case("weights_" + how, BODY, (2, 2, 6, 6), WEIGHTS, how=how, **more, formula=y_of(
        lambda x, r=rounded: np.maximum(conv(x, r(WEIGHTS[0][2][0]), r(WEIGHTS[0][2][1])), 0).reshape(2, 64) @ r(WEIGHTS[1][2][0]).T
        + r(WEIGHTS[1][2][1])))

OLD = """layers { name: "c" type: CONVOLUTION bottom: "x" top: "c" blobs_lr: 1 blobs_lr: 2 weight_decay: 1
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "y" type: INNER_PRODUCT bottom: "c" top: "y" inner_product_param { num_output: 3 } }
layers { name: "p" type: SOFTMAX bottom: "y" top: "p" }
"""
case("old_layers", OLD, (2, 2, 6, 6), [("c", "CONVOLUTION", WEIGHTS[0][2]), ("y", "INNER_PRODUCT", WEIGHTS[1][2])], outputs=["p"],
     how="old legacy",
     head='input: "x"\ninput_dim: 2\ninput_dim: 2\ninput_dim: 6\ninput_dim: 6\n')
case("input_layers", 'layer { name: "z" type: "Input" top: "z" input_param { shape { dim: 1 dim: 4 } } }\n' +
     layer("Eltwise", "x z", "y", "eltwise_param { operation: PROD }"), {"x": (1, 4), "z": (1, 4)},
     head=inputs_text({"x": (1, 4)}))
TRAIN = """layer { name: "d" type: "Data" top: "x" top: "label" include { phase: TRAIN } data_param { batch_size: 64 } }
layer { name: "d" type: "Data" top: "x" top: "label" include { phase: TEST }
  transform_param { crop_size: 6 mean_file: "mean.binaryproto" scale: 0.5 } data_param { source: "db" batch_size: 2 } }
""" + BODY.replace("ReLU", "Python").replace('bottom: "c"\n  top: "c"', 'bottom: "x"\n  bottom: "label"\n  top: "none"\n  python_param { module: "m" layer: "L" }') + """
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
layer { name: "acc" type: "Accuracy" bottom: "y" bottom: "label" top: "acc" include { phase: TEST } }
layer { name: "only" type: "Exp" bottom: "y" top: "only" exclude { phase: TEST } }
"""
THIRD = [("c", "Convolution", [rand("tc", 4, 3, 3, 3), rand("fb", 4)]), WEIGHTS[1]]
case("train_val", TRAIN, (2, 3, 6, 6), THIRD, head="", oracle="formula", formula=y_of(
    lambda x: conv(x, THIRD[0][2][0], THIRD[0][2][1]).reshape(2, 64) @ WEIGHTS[1][2][0].T + WEIGHTS[1][2][1]))
SHARED = 'inner_product_param { num_output: 5 } param { name: "w" lr_mult: 1 } param { name: "b" }'
case("shared_params", layer("InnerProduct", "x", "a", SHARED) + layer("InnerProduct", "z", "b", SHARED), {"x": (2, 4), "z": (3, 4)},
     [("a", "InnerProduct", [rand("shw", 5, 4), rand("shb", 5)])], outputs=["a", "b"], how="h5", oracle="formula",
     formula=lambda i: {n: i[k] @ rand("shw", 5, 4).T + rand("shb", 5) for n, k in (("a", "x"), ("b", "z"))})
NAMELESS = """layer { type: "InnerProduct" bottom: "x" top: "a" inner_product_param { num_output: 5 } }
layer { type: "ReLU" bottom: "a" top: "a" }
layer { type: "InnerProduct" bottom: "a" top: "y" inner_product_param { num_output: 2 bias_term: false } }
"""
case("nameless", NAMELESS, (3, 4), [("", "InnerProduct", [rand("nw", 5, 4), rand("nb", 5)]), ("", "InnerProduct", [rand("nx", 2, 5)])],
     oracle="formula", formula=y_of(lambda x: np.maximum(x @ rand("nw", 5, 4).T + rand("nb", 5), 0) @ rand("nx", 2, 5).T))
UNKNOWN = """# A comment, a field that nobody knows, and both kinds of brackets.
force_backward: true
solver_hint { level: 3 tags: ["a", 'b'] inner < value: -1.5e3 > }
layer < name: 'y' type: "Power" bottom: "x" top: "y" loss_weight: [0.5] power_param < scale: 2.5f, shift: -inf; > >
"""
case("text_forms", UNKNOWN.replace("-inf", "-.5"), (2, 3), oracle="formula", formula=y_of(lambda x: 2.5 * x - 0.5))
