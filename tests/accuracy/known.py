"""known.py MODEL [STREAM]: the model on real data. Its outputs must agree with ONNX Runtime's to 1e-4 of
the largest magnitude (float models), and reach the accuracy that stands in the table below."""

import hashlib
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import int8  # noqa: E402
import models  # noqa: E402

try:
    import detection
    import preprocess
except ImportError as error:
    print(f"skipped: {error} (scripts/venv installs what is needed)")
    sys.exit(77)

# Of the largest magnitude of ONNX Runtime's output. A sum of K products in float32 is off by about sqrt(K) 2^-24 of its
# terms, Winograd's tiles by ten times that, and tens of layers carry it on: 1e-5, so that 1e-4 has room for every order
# of the sums, and so for every instruction set.
AGREEMENT = 1e-4
# A Softmax makes of the absolute error of its inputs, numbers of up to 40, a quarter of it where it is steepest, and among
# the 10,000 steps of all words some are: 1e-5 x 40 / 4 is the largest error to be expected there.
AGREEMENT_OF = {"pp_ocr": 3e-4}
# Files whose integers must be ONNX Runtime's own, to the last bit.
EXACT = {"mobilenet_v2_int8_qdq_ort", "tiny_se_mobilenet_cifar10_qdq_ort"}
# Samples that ONNX Runtime computes too. The words are the samples that lie farthest apart: all of them count.
COMPARED = 128
COMPARED_ALL = {"pp_ocr"}
CIFAR = ((.4914, .4822, .4465), (.2023, .1994, .2010))

# ---- What a model is good for -----------------------------------------------------------------------------


def top(outputs, labels, shift=0):
    """Top-1 and top-5 in percent; ties go to the lower index."""
    scores = outputs.reshape(len(labels), -1)
    own = scores[np.arange(len(labels)), labels + shift][:, None]
    index = np.arange(scores.shape[1])[None, :]
    better = (scores > own) | ((scores == own) & (index < (labels + shift)[:, None]))
    rank = better.sum(1)
    return {"top-1": 100 * (rank < 1).mean(), "top-5": 100 * (rank < 5).mean()}


def exact_words(outputs, texts):
    """Greedy CTC: the best class of every step, repeats once, class 0 is nothing."""
    letters, right = preprocess.alphabet(), 0
    for steps, text in zip(outputs.argmax(-1), texts):
        kept = [k for i, k in enumerate(steps) if k and (i == 0 or k != steps[i - 1])]
        right += "".join(letters[k] if k < len(letters) else "" for k in kept) == text
    return {"words": right}


def boxes(outputs, truth, decode):
    found = []
    for output, (_, (scale, left, top_edge)) in zip(outputs, truth):
        corners, scores = decode(output)
        corners = (corners - np.array([left, top_edge, left, top_edge])) / scale
        found.append(detection.detections(corners, scores))
    half, mean = detection.mean_average_precision(found, [t for t, _ in truth])
    return {"mAP50": half, "mAP50-95": mean}


# ---- Cases: data -> inputs, judge -> numbers, what they must be, tolerance ------------------------------------


# The tolerances are half of the last digit that is known. Rounding in float changes no hit: scores of two classes lie
# within 1e-5 of each other for one picture in 10,000. Of boxes some pass each other: 0.002.


def imagenet_case(order, mean, std, expected, shift=0):
    return (lambda: preprocess.imagenet(order, mean, std), lambda y, t: top(y, t, shift),
            dict(zip(("top-1", "top-5"), expected)), 0.1)


def cifar_case(mean, std, expected):
    return (lambda: preprocess.cifar10(mean, std), top, {"top-1": expected}, 0.1)


def coco_yolov8():
    pixels, truth = preprocess.coco(640, True)
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).astype(np.float32) / 255, truth


def coco_yolox():
    pixels, truth = preprocess.coco(416, False)
    pixels = pixels[..., ::-1].transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pixels).astype(np.float32), truth


CASES = {
    "resnet50": imagenet_case("BGR", (103.939, 116.779, 123.68), 1, (89.0, 98.2)),
    "mobilenet_v1": imagenet_case("RGB", 127.5, 127.5, (88.2, 98.0), shift=1),
    "squeezenet": imagenet_case("BGR", (104, 117, 123), 1, (60.0, 80.6)),
    "resnet20": cifar_case((.485, .456, .406), (.229, .224, .225), 91.50),
    "se_mobilenet": cifar_case(*CIFAR, 90.73),
    "vit": cifar_case(*CIFAR, 73.28),
    "yolov8n": (coco_yolov8, lambda y, t: boxes(y, t, detection.yolov8),
                {"mAP50": .617, "mAP50-95": .449}, 0.002),
    "yolox_nano": (coco_yolox, lambda y, t: boxes(y, t, detection.yolox),
                   {"mAP50": .527, "mAP50-95": .346}, 0.002),
    "pp_ocr": (preprocess.words, exact_words, {"words": 227}, 0.5),
    "mobilenet_v2_int8_qdq_ort": imagenet_case(
        "RGB", (123.675, 116.28, 103.53), (58.395, 57.12, 57.375), (81.0, 95.6)),
    "tiny_se_mobilenet_cifar10_qdq_ort": cifar_case(*CIFAR, 90.45),
    "tiny_mobilenet_cifar10_qoperator_ort": cifar_case(
        (.4914, .4822, .4465), (.2470, .2435, .2616), 78.08),
}

# ---- Running ----------------------------------------------------------------------------------------------


def model_path(name):
    if name in models.MODELS:
        return models.path_of(name)
    return os.path.join(models.DATA, "quantized", name + ".onnx")


def quench_outputs(path, inputs, *options):
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "in.npy"), inputs)
        subprocess.run([models.QUENCH, "infer", path, "-d", os.path.join(folder, "in.npy"),
                        "--output-dir", os.path.join(folder, "out"), *options], check=True,
                       stdout=subprocess.DEVNULL)
        files = os.listdir(os.path.join(folder, "out"))
        return np.load(os.path.join(folder, "out", files[0]))


# Of the command; small networks gain nothing from a second thread.
OPTIONS = {name: ["--batch", "8", "--threads", "1" if name in ("resnet20", "se_mobilenet", "vit") else "2"]
           for name in models.STEPS}


def kept_outputs(name, path, inputs):
    """What quench makes of the inputs, once for all tests of a build: the file is named after all that it depends on."""
    with open(path, "rb") as file:
        digest = hashlib.blake2b(file.read(), digest_size=16)
    options = OPTIONS.get(name, [])
    digest.update(" ".join((*options, str(inputs.shape))).encode())
    digest.update(np.ascontiguousarray(inputs))

    def make(folder):
        np.save(os.path.join(folder, "outputs.npy"), quench_outputs(path, inputs, *options))

    folder = int8.cached(int8.of_this_build("outputs"), digest.hexdigest(), make, may_fail=False)
    return np.load(os.path.join(folder, "outputs.npy"))


def runtime_outputs(path, inputs, exact=True):
    import runtime
    session = runtime.session(path, threads=2, exact=exact)
    first = session.get_inputs()[0]
    batch = first.shape[0] if isinstance(first.shape[0], int) else 8
    return np.concatenate([session.run(None, {first.name: inputs[i:i + batch]})[0]
                           for i in range(0, len(inputs), batch)])


def check_agreement(name, ours, theirs, reference=None):
    """Lines that say what is wrong. `reference` computes a sample by the reference kernels: it says who of both is off."""
    error, largest = np.abs(ours - theirs).max(), np.abs(theirs).max()
    print(f"largest difference from ONNX Runtime {error:.3g}, {error / largest:.2g} of {largest:.3g}")
    limit = 0 if name in EXACT else AGREEMENT_OF.get(name, AGREEMENT) * largest
    if error <= limit:
        return []
    if reference and name not in EXACT:
        i = int(np.abs(ours - theirs).reshape(len(ours), -1).max(1).argmax())
        own, other = (np.abs(values[i] - reference(i)).max() for values in (ours, theirs))
        print(f"there quench is {own / largest:.2g} from the reference kernels, ONNX Runtime {other / largest:.2g}")
        if own <= limit < other:
            return []
    return [f"differs from ONNX Runtime by {error / largest:.2g}"]


def check_case(name):
    data, judge, expected, tolerance = CASES[name]
    inputs, truth = data()
    if models.SANITIZED:
        inputs, truth, expected = inputs[:models.FEW], truth[:models.FEW], {}
    path = model_path(name)
    ours = kept_outputs(name, path, inputs)
    wrong = []
    if name in models.MODELS or name in EXACT:
        count = len(inputs) if name in COMPARED_ALL else COMPARED
        wrong += check_agreement(name, ours[:count], runtime_outputs(path, inputs[:count]),
                                 lambda i: quench_outputs(path, inputs[i:i + 1], "--backend", "ref")[0])
    for key, value in judge(ours, truth).items():
        wanted = expected.get(key, float("nan"))
        print(f"{key} {value:.4g}, expected {wanted:.4g}, {value - wanted:+.4g}")
        # The table has the manifest's digits; what lies above is as good.
        if key not in expected or value >= expected[key] - tolerance:
            continue
        wrong.append(f"{key} is {value:.4g} instead of {expected[key]:.4g}")
    return wrong


# ---- silero_vad: the state goes from chunk to chunk ------------------------------------------------------------


def silero_runtime(path, chunks):
    import runtime
    session, state = runtime.session(path, threads=2), np.zeros((2, 1, 128), np.float32)
    rate, out = np.array(16000, np.int64), []
    for chunk in chunks:
        p, state = session.run(None, {"input": chunk[None], "state": state, "sr": rate})
        out.append(p[0, 0])
    return np.array(out)


def check_silero(stream):
    path, chunks = models.path_of("silero_vad"), preprocess.speech()
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("in.npy", "out.npy")]
        np.save(files[0], chunks[:, None, :])
        subprocess.run([stream, path, *files], check=True)
        ours = np.load(files[1]).ravel()
    wrong = check_agreement("silero_vad", ours, silero_runtime(path, chunks))
    print(f"{len(ours)} chunks, {int((ours > .5).sum())} with speech, mean {ours.mean():.5f}")
    if len(ours) != 937 or (ours > .5).sum() != 734 or abs(ours.mean() - 0.78936) > 1e-4:
        wrong.append("expected 937 chunks, 734 with speech, mean 0.78936")
    return wrong


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    name = sys.argv[1]
    wrong = check_silero(sys.argv[2]) if name == "silero_vad" else check_case(name)
    for line in wrong:
        print(f"{name}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
