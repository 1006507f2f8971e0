"""Runs a model with the runtime of its framework: `quench convert` asks for this, to compare what it wrote.

`python -m quench.runtimes FOLDER`: the file `job` there has lines of a key, a tab and a value (framework, model, weights,
channels_first; input and output once for each, in the order of the model), `in<i>.npy` are the inputs. It writes
`out<i>.npy` and, as `words`, who ran. Exit code 77: nobody can, `words` says why."""
import os
import sys

import numpy as np

ABSENT = 77


class Job:
    def __init__(self, folder):
        self.folder = folder
        self.values, self.inputs, self.outputs = {}, [], []
        with open(os.path.join(folder, "job"), encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.rstrip("\n").partition("\t")
                if key in ("input", "output"):
                    getattr(self, key + "s").append(value)
                else:
                    self.values[key] = value
        self.model = self.values["model"]
        self.weights = self.values.get("weights")

    def arrays(self):
        """The inputs as the framework has them: channels last, where quench was told to put them first."""
        arrays = [np.load(os.path.join(self.folder, f"in{i}.npy")) for i in range(len(self.inputs))]
        if "channels_first" in self.values:
            arrays = [np.moveaxis(a, 1, -1) if a.ndim == 4 else a for a in arrays]
        return arrays

    def feed(self):
        return dict(zip(self.inputs, self.arrays()))


class Absent(Exception):
    """The runtime is not installed, or cannot run this model."""


def need(*names):
    """The first of the modules that is there."""
    for name in names:
        try:
            return __import__(name, fromlist=["_"])
        except ImportError:
            continue
    raise Absent(f"{names[0].partition('.')[0]} is not installed")


def beside(path, old, new):
    return path[: -len(old)] + new if path.endswith(old) else None


# Each takes a job and returns what ran and the outputs: a list in the model's order, or a dict by name.


def caffe(job):
    weights = job.weights or beside(job.model, ".prototxt", ".caffemodel")
    cv2 = need("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        raise Absent(f"OpenCV {cv2.__version__} reads no Caffe models")
    net = cv2.dnn.readNetFromCaffe(job.model, weights)
    for name, array in job.feed().items():
        net.setInput(array, name)
    return f"OpenCV {cv2.__version__}", dict(zip(job.outputs, net.forward(job.outputs)))


def tensorflow(job):
    tf = need("tensorflow")
    if os.path.isdir(job.model):
        function = tf.saved_model.load(job.model).signatures["serving_default"]
        keys = list(function.structured_input_signature[1])
        outputs = function(**{key: tf.constant(array) for key, array in zip(sorted(keys), job.arrays())})
        return f"TensorFlow {tf.__version__}", [outputs[key].numpy() for key in sorted(outputs)]
    graph = tf.compat.v1.GraphDef()
    with open(job.model, "rb") as file:
        graph.ParseFromString(file.read())
    with tf.Graph().as_default() as scope:
        tf.import_graph_def(graph, name="")
        tensor = lambda name: scope.get_tensor_by_name(name if ":" in name else name + ":0")
        with tf.compat.v1.Session(graph=scope) as session:
            done = session.run([tensor(name) for name in job.outputs],
                               {tensor(name): array for name, array in job.feed().items()})
    return f"TensorFlow {tf.__version__}", done


def keras(job):
    module = need("keras")
    model = module.models.load_model(job.model, compile=False)
    done = model(job.arrays()[0] if len(job.inputs) == 1 else job.arrays(), training=False)
    return f"Keras {module.__version__}", [np.asarray(one) for one in (done if isinstance(done, (list, tuple)) else [done])]


def tflite(job):
    try:
        lite = need("ai_edge_litert.interpreter", "tflite_runtime.interpreter")
    except Absent:
        lite = need("tensorflow").lite
    interpreter = lite.Interpreter(model_path=job.model, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    wanted = interpreter.get_input_details()
    for detail, array in zip(wanted, job.arrays()):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(wanted, job.arrays()):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    return "LiteRT", [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def paddle(job):
    module = need("paddle")
    from paddle import inference
    weights = job.weights or beside(job.model, ".pdmodel", ".pdiparams") or beside(job.model, ".json", ".pdiparams")
    config = inference.Config(job.model, weights) if weights else inference.Config(os.path.dirname(job.model))
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    for name, array in job.feed().items():
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    return f"Paddle {module.__version__}", [predictor.get_output_handle(name).copy_to_cpu()
                                            for name in predictor.get_output_names()]


def pytorch(job):
    torch = need("torch")
    if job.model.endswith(".pt2"):
        model = torch.export.load(job.model).module()
    else:
        model = torch.jit.load(job.model, map_location="cpu").eval()
    with torch.no_grad():
        done = model(*(torch.from_numpy(array) for array in job.arrays()))
    if isinstance(done, dict):
        done = list(done.values())
    return f"PyTorch {torch.__version__}", [one.numpy() for one in (done if isinstance(done, (list, tuple)) else [done])]


RUNTIMES = {"caffe": caffe, "tensorflow": tensorflow, "keras": keras, "tflite": tflite, "paddle": paddle,
            "pytorch": pytorch}


def main(folder):
    words = os.path.join(folder, "words")
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", GLOG_minloglevel="3", KMP_WARNINGS="0")
    code = 0
    try:
        job = Job(folder)
        runtime = RUNTIMES.get(job.values["framework"])
        if not runtime:
            raise Absent(f"there is no runtime for {job.values['framework']}")
        who, outputs = runtime(job)
        if not isinstance(outputs, dict):
            outputs = dict(zip(job.outputs, outputs))
        for i, name in enumerate(job.outputs):
            if name in outputs:
                np.save(os.path.join(folder, f"out{i}.npy"), np.ascontiguousarray(outputs[name]))
    except Absent as absent:
        who, code = str(absent), ABSENT
    except Exception as error:  # whatever a framework raises: it did not run the model
        who, code = f"the framework's runtime failed: {type(error).__name__}: {error}".split("\n")[0], ABSENT
    with open(words, "w", encoding="utf-8") as file:
        file.write(who[:120] + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
