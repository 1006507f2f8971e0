"""What the built-in infer_auto does, as a script: random numbers of the inputs' shapes and types, whatever the model is."""
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func
from onnx_quantize_tool.utils.constants import NP_TYPE_DICT


@onnx_infer_func.register("infer_auto_script")
def infer_auto_script(executor):
    numbers = np.random.default_rng(0)
    executor.init_shape_info()
    for _ in range(executor.iteration):
        data = []
        for name in executor.input_nodes:
            kind = NP_TYPE_DICT[executor.input_types[name]]
            x = numbers.random(executor.shape_dicts[name])
            data.append((x if np.issubdtype(kind, np.floating) else x < 0.5).astype(kind))
        executor.forward(*data)
        if executor.early_stop_flag:
            break
