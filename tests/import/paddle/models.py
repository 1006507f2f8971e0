"""Models of QUENCH_DATA/paddle and what is peculiar to each (reference.py)."""

MODELS = [
    ("paddle/pp_lcnet_x0_25_textline_ori/inference.json", {}),
]
