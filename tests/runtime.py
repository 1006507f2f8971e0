"""runtime.py: sessions of ONNX Runtime for the tests, and what its 8-bit products are worth on this CPU."""

import os

import onnxruntime

# Limits of oneDNN below VNNI, which OpenVINO obeys and ONNX Runtime does not.
LIMITED = os.environ.get("ONEDNN_MAX_CPU_ISA") in ("SSE41", "AVX", "AVX2", "AVX512_CORE")
with open("/proc/cpuinfo", encoding="utf-8") as cpu:
    # Below VNNI, ONNX Runtime and OpenVINO add products of 8 bits in pairs of 16 bits, which saturate.
    SATURATES = LIMITED or "vnni" not in cpu.read()
# Options of quench quant for files that such engines compute right on this CPU.
PORTABLE = ["--reduce-range"] if SATURATES else []


def session(model, threads=0, level=None, exact=True):
    """Of a path or of bytes. `exact`: by slower products where the fast ones saturate."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    # Tests run side by side.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if level is not None:
        options.graph_optimization_level = level
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
