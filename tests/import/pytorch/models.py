"""Models of QUENCH_DATA that PyTorch made, and what differs from the plain case (see reference.py)."""

MODELS = [
    ("pytorch/traffic_sign_torchscript/model_scripted.pt", {"rename": {"0": "output"}}),
    ("pytorch/asl_traced/traced_model.pt", {"rename": {"0": "output"}}),
    ("pytorch/facenet_mtcnn/rnet_torch215.pt2", {"ref": "rnet", "rename": {"": "x", "reg": "linear_1", "prob": "softmax"}}),
]
