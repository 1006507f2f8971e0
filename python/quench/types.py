"""Element types: ONNX's numbers and NumPy's names."""
import numpy as np

NP_TYPE_DICT = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
    14: np.complex64,
    15: np.complex128,
}

NUMBERS = {np.dtype(kind): number for number, kind in NP_TYPE_DICT.items()}
