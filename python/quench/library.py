"""The C structures and functions of quench.h and its two other pages that the executor uses."""
import ctypes
import os

MAX_RANK = 16
OK, INVALID, CANCELLED, OPTION = 0, 4, 6, 8


class Tensor(ctypes.Structure):
    """qn_tensor"""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * MAX_RANK),
        ("data", ctypes.c_void_p),
    ]


class ValueInfo(ctypes.Structure):
    """qn_value_info"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * MAX_RANK),
        ("symbols", ctypes.c_char_p * MAX_RANK),
    ]


class LayerInfo(ctypes.Structure):
    """qn_layer_info"""

    _fields_ = [("node", ctypes.c_char_p), ("output", ValueInfo)]


class Facts(ctypes.Structure):
    """qn_executor_facts"""

    _fields_ = [
        ("iteration", ctypes.c_int64),
        ("batch_size", ctypes.c_int64),
        ("dataset", ctypes.c_char_p),
        ("save_dir", ctypes.c_char_p),
        ("run_mode", ctypes.c_char_p),
        ("script", ctypes.c_char_p),
        ("configs", ctypes.c_char_p),
        ("stage", ctypes.c_char_p),
        ("quiet", ctypes.c_int),
        ("n_inputs", ctypes.c_size_t),
        ("n_outputs", ctypes.c_size_t),
        ("n_layers", ctypes.c_size_t),
    ]


INFER_FN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)
)

# name: result, arguments
SIGNATURES = {
    "qn_executor_get": (ctypes.POINTER(Facts), [ctypes.c_void_p]),
    "qn_executor_input": (None, [ctypes.POINTER(ValueInfo), ctypes.c_void_p, ctypes.c_size_t]),
    "qn_executor_layer": (None, [ctypes.POINTER(LayerInfo), ctypes.c_void_p, ctypes.c_size_t]),
    "qn_executor_output_name": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_size_t]),
    "qn_executor_forward": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_size_t],
    ),
    "qn_executor_output": (ctypes.POINTER(Tensor), [ctypes.c_void_p, ctypes.c_size_t]),
    "qn_executor_early_stop": (ctypes.c_int, [ctypes.c_void_p]),
    "qn_executor_error": (ctypes.c_char_p, [ctypes.c_void_p]),
    "qn_executor_fail": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]),
    "qn_infer_call": (
        ctypes.c_int,
        [ctypes.POINTER(ctypes.c_double), ctypes.c_void_p, ctypes.c_char_p],
    ),
    "qn_infer_name": (ctypes.c_char_p, [ctypes.c_size_t]),
    "quench_command": (
        ctypes.c_int,
        [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), INFER_FN],
    ),
}


def load(path):
    """The command as a library, with the types of what is called."""
    if not path or not os.path.exists(path):
        raise ImportError(
            "QUENCH_COMMAND does not name the command's library: start scripts with "
            "'quench quant -uds script.py'"
        )
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
