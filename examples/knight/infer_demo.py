"""An infer function: batches of a file through the model, and how many it names rightly; and a model of PyTorch."""
import os

import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func, pytorch_model

HERE = os.path.dirname(os.path.abspath(__file__))


@onnx_infer_func.register("infer_cls_model")
def infer_cls_model(executor):
    batches = np.load(os.path.join(HERE, "data/fashion_input_b10_s5.npy"))
    labels = np.load(os.path.join(HERE, "data/fashion_label_b10_s5.npy"))
    right = seen = 0
    for x, label in list(zip(batches, labels))[: executor.iteration]:
        x, label = x[: executor.batch_size], label[: executor.batch_size]
        scores = executor.forward(x)[0]
        right += int((scores.argmax(1) == label).sum())
        seen += len(label)
        print(f"accuracy so far: {100 * right / seen:.2f}")
        if executor.early_stop_flag:
            break
    return 100 * right / seen


@pytorch_model.register("resnet18")
def resnet18(weight_path=None):
    import torch
    from resnet18 import ResNet18

    model = ResNet18()
    if weight_path:
        model.load_state_dict(torch.load(weight_path, map_location="cpu"), strict=True)
    return {"model": model, "inputs": [torch.randn(10, 1, 28, 28)],
            "dynamic_axes_inputs": {"input": {0: "batch_size"}}, "dynamic_axes_outputs": {"output": {0: "batch_size"}}}
