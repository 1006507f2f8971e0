"""int8.py [MODEL...]: quantized files of the shared models, each tool's from the same calibration data: quench's own
(any options), ONNX Runtime's (quant_pre_process, quantize_static) and NNCF's for OpenVINO. They are made once
and kept under build/int8, in a folder that names the version of the tool; run as a program it makes them all."""

import contextlib
import glob
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import models

FOLDER = os.path.join(models.ROOT, "build", "int8")


def cached(tool, name, make, may_fail=True):
    """Folder of what make(folder) leaves there, or None with the reason printed where it fails: a peer's tool
    that cannot take a model is a result too, and is kept as the file `failed`."""
    folder = os.path.join(FOLDER, tool, name)
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        part = tempfile.mkdtemp(dir=os.path.dirname(folder))
        start = time.perf_counter()
        try:
            make(part)
            with open(os.path.join(part, "seconds"), "w", encoding="utf-8") as file:
                file.write(f"{time.perf_counter() - start:.2f}")
        except Exception as error:  # whatever a tool throws
            if not may_fail:
                shutil.rmtree(part)
                raise
            with open(os.path.join(part, "failed"), "w", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0]}")
        try:
            os.rename(part, folder)
        except OSError:  # somebody else was faster
            shutil.rmtree(part)
    failed = os.path.join(folder, "failed")
    if os.path.exists(failed):
        with open(failed, encoding="utf-8") as file:
            print(f"{tool} cannot quantize {name}: {file.read()[:160]}")
        return None
    return folder


def seconds_of(path):
    """What making a file of a `cached` folder took; None where nobody noted it."""
    noted = path and os.path.join(os.path.dirname(path), "seconds")
    if not noted or not os.path.exists(noted):
        return None
    with open(noted, encoding="utf-8") as file:
        return float(file.read())


# ---- quench ------------------------------------------------------------------------------------------------


def build_key():
    """Tells one build of quench from another, and its kernels from those under a limit (their sums in float, and so the
    last digits of scales, are others)."""
    digest = hashlib.sha256(os.environ.get("ONEDNN_MAX_CPU_ISA", "").encode())
    for path in (models.QUENCH, *sorted(glob.glob(os.path.dirname(models.QUENCH) + "/libquench.so"))):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def quant_command(name, folder, *options):
    return [models.QUENCH, "quant", "-q", "-m", models.path_of(name), *models.calibration(name),
            "--save-dir", folder, *options]


def of_this_build(tool):
    """The folder for what `tool` makes; those that older builds made are thrown away."""
    version = f"{tool}-{build_key()}"
    for old in glob.glob(os.path.join(FOLDER, glob.escape(tool) + "-" + "[0-9a-f]" * 12)):
        if os.path.basename(old) != version:
            shutil.rmtree(old)
    return version


def quench_file(name, *options):
    """quench's file."""
    tool = "quench" + re.sub(r"[^0-9A-Za-z-]", "_", "".join(options))
    folder = cached(of_this_build(tool), name, lambda part: subprocess.run(
        quant_command(name, part, *options), stdout=subprocess.DEVNULL, check=True),
        may_fail=False)
    return glob.glob(os.path.join(folder, "*_quantize.onnx"))[0]


# ---- The peers -----------------------------------------------------------------------------------------------


def samples(name):
    """The calibration data as quench reads them, one array of batch 1 each: what Identity makes of them."""
    import onnx
    key, shape = next(iter(models.shapes_of(name, 1).items()))
    ends = [onnx.helper.make_tensor_value_info(end, onnx.TensorProto.FLOAT, shape)
            for end in (key, "samples")]
    node = onnx.helper.make_node("Identity", [key], ["samples"])
    graph = onnx.helper.make_graph([node], "identity", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)],
                                   ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "identity.onnx")
        onnx.save(model, path)
        subprocess.run([models.QUENCH, "infer", "-q", path, *models.calibration(name),
                        "--output-dir", folder], stdout=subprocess.DEVNULL, check=True)
        return np.split(values := np.load(os.path.join(folder, "samples.npy")), len(values))


def ort_quantize(path, made, feeds):
    """ONNX Runtime's tool on a model and a list of {input: sample}: activations uint8, weights int8 per channel,
    ranges by min-max, its default. Writes the file `made`."""
    import onnxruntime
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.rest = iter(feeds)

        def get_next(self):
            return next(self.rest, None)

    logging.disable(logging.WARNING)
    prepared = made + ".prepared"
    quantization.shape_inference.quant_pre_process(path, prepared)
    quantization.quantize_static(
        prepared, made, Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    os.remove(prepared)
    onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])


def feeds_of(name):
    key = next(iter(models.MODELS[name][1]))
    return [{key: sample} for sample in samples(name)]


def ort_tool():
    import onnxruntime
    return f"ort-{onnxruntime.__version__}"


def ort_file(name):
    """ONNX Runtime's."""
    path, file = models.path_of(name), name + ".onnx"
    folder = cached(ort_tool(), name, lambda folder: ort_quantize(
        path, os.path.join(folder, file), feeds_of(name)))
    return folder and os.path.join(folder, file)


def nncf_quantize(path, made, feeds, transformer):
    """NNCF with its defaults on a model and a list of {input: sample}; `transformer` is what its manual asks for
    where there is attention. Writes the file `made`."""
    import nncf
    import openvino
    nncf.set_log_level(logging.ERROR)
    model = openvino.Core().read_model(path)
    model.reshape({key: list(value.shape) for key, value in feeds[0].items()})
    with contextlib.redirect_stdout(sys.stderr):
        quantized = nncf.quantize(model, nncf.Dataset(feeds), subset_size=len(feeds),
                                  model_type=nncf.ModelType.TRANSFORMER if transformer else None)
    openvino.save_model(quantized, made, compress_to_fp16=False)


def nncf_tool():
    import nncf
    import openvino
    return f"nncf-{nncf.__version__}-openvino-{openvino.get_version().split('-')[0]}"


def nncf_file(name):
    """OpenVINO's."""
    path, file = models.path_of(name), name + ".xml"
    folder = cached(nncf_tool(), name, lambda folder: nncf_quantize(
        path, os.path.join(folder, file), feeds_of(name), name in ("vit", "pp_ocr")))
    return folder and os.path.join(folder, file)


def main():
    for name in sys.argv[1:] or models.INT8_BOUNDS:
        for make in (quench_file, ort_file, nncf_file):
            print(f"{name}: {make(name)}", flush=True)


if __name__ == "__main__":
    main()
