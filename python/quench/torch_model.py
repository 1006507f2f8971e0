"""Models of PyTorch that a script registers: made by the script's function, traced by the installed PyTorch, and
handed to the command as a TorchScript file."""
import importlib.util
import json
import os
import re
import sys
import warnings


class Refused(Exception):
    """What a script gave is no model."""


def identifier(name):
    return re.sub(r"\W", "_", str(name)) or "input"


def axes_of(axes):
    """{0: "batch"} or [0]: text of each axis -> its name."""
    if isinstance(axes, dict):
        return {str(axis): str(name) for axis, name in axes.items()}
    return {str(axis): f"dim_{axis}" for axis in axes}


def parts_of(name, made):
    """A dictionary, or the two values (model, inputs)."""
    if isinstance(made, (tuple, list)) and len(made) == 2:
        made = {"model": made[0], "inputs": made[1]}
    if not isinstance(made, dict) or "model" not in made or "inputs" not in made:
        raise Refused(f"'{name}' returned {type(made).__name__}: a dictionary with 'model' and 'inputs' is expected, or both")
    inputs = made["inputs"]
    return made, list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]


def traced(made, inputs):
    """The model in evaluation, called with the inputs by their names and the constants of the dictionary."""
    import torch

    class Traced(torch.nn.Module):
        def __init__(self, model, constants):
            super().__init__()
            self.model, self.constants = model, constants

    names = [identifier(key) for key in made.get("dynamic_axes_inputs") or {}]
    if len(names) != len(inputs):
        names = ["input"] if len(inputs) == 1 else [f"input{i}" for i in range(len(inputs))]
    scope = {}
    listed = ", ".join(names)
    exec(f"def forward(self, {listed}):\n    return self.model({listed}, **self.constants)\n", scope)
    Traced.forward = scope["forward"]
    module = Traced(made["model"].cpu(), dict(made.get("concrete_args") or {})).eval()
    with torch.no_grad():
        return torch.jit.trace(module, tuple(x.cpu() for x in inputs), check_trace=False, strict=False), names


def export(name, made, folder):
    import torch

    made, inputs = parts_of(name, made)
    program, names = traced(made, inputs)
    axes = list((made.get("dynamic_axes_inputs") or {}).values())
    notes = {"inputs": {key: axes_of(own) for key, own in zip(names, axes)},
             "types": {key: {"dtype": str(x.dtype).rpartition(".")[2], "shape": list(x.shape)} for key, x in zip(names, inputs)},
             "outputs": [str(key) for key in made.get("dynamic_axes_outputs") or {}]}
    path = os.path.join(folder, identifier(name) + ".pt")
    torch.jit.save(program, path, _extra_files={"quench.json": json.dumps(notes)})
    return path


def make(host, folder):
    """Sets QUENCH_MODEL_FILE. Returns the exit code; None: all is well."""
    name, script = os.environ["QUENCH_MODEL_NAME"], os.environ["QUENCH_MODEL_SCRIPT"]
    weights = os.environ.get("QUENCH_MODEL_WEIGHTS")
    if importlib.util.find_spec("torch") is None:
        print(f"quench: models of PyTorch that scripts make need PyTorch, which {sys.executable} does not have: "
              "'pip install torch' (1.13 or newer; QUENCH_PYTHON names another interpreter)", file=sys.stderr)
        return 3
    from onnx_quantize_tool.common.register import pytorch_model

    try:
        host.load(script)
        if name not in pytorch_model:
            known = ", ".join(sorted(pytorch_model)) or "none"
            raise Refused(f"{script} registers no model '{name}' with pytorch_model (it has: {known})")
        made = pytorch_model[name](weights) if weights else pytorch_model[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tracing, which newer versions advise against
            os.environ["QUENCH_MODEL_FILE"] = export(name, made, folder)
        return None
    except Refused as error:
        print(f"quench: {error}", file=sys.stderr)
    except BaseException as error:
        host.show()
        words = str(error).strip().splitlines()
        print(f"quench: model '{name}' of {script}: {type(error).__name__}: {words[0] if words else ''}", file=sys.stderr)
    return 1
