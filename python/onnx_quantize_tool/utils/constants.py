"""NumPy's types by the numbers that ONNX gives them, as executor.input_types has them."""
from quench.types import NP_TYPE_DICT

__all__ = ["NP_TYPE_DICT"]
