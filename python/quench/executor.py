"""The executor as infer functions see it."""
import ctypes
import json

import numpy as np

from quench import library
from quench.types import NP_TYPE_DICT, NUMBERS


class Cancelled(KeyboardInterrupt):
    """The user stopped the run while the model was at work."""


def text(value):
    return None if value is None else value.decode("utf-8", "surrogateescape")


class Executor:
    """A model that a function feeds. It is of use only while the function runs."""

    gpu = -1

    def __init__(self, lib, handle):
        self._lib = lib
        self._handle = handle
        facts = lib.qn_executor_get(handle).contents
        self._quiet = bool(facts.quiet)
        self._stage = text(facts.stage)
        self._n_layers = facts.n_layers
        self.iteration = facts.iteration
        self.batch_size = facts.batch_size
        self.dataset = text(facts.dataset)
        self.save_dir = text(facts.save_dir)
        self.run_mode = text(facts.run_mode)
        self.user_defined_script = text(facts.script)
        self.input_configs_dict = json.loads(text(facts.configs)) if facts.configs else []
        self._inputs = [self._input(i) for i in range(facts.n_inputs)]
        self.input_nodes = [info[0] for info in self._inputs]
        self.input_types = {name: kind for name, kind, _ in self._inputs}
        self.output_node_list = [
            text(lib.qn_executor_output_name(handle, i)) for i in range(facts.n_outputs)
        ]
        self.shape_dicts = {}
        self._tensors = (library.Tensor * max(facts.n_inputs, 1))()

    # -- what the model is --

    def _input(self, i):
        info = library.ValueInfo()
        self._lib.qn_executor_input(ctypes.byref(info), self._handle, i)
        return text(info.name), info.dtype, self._shape(info)

    def _shape(self, info):
        """Open dimensions: the batch first, 1 elsewhere."""
        dims = [info.dims[d] for d in range(max(info.rank, 0))]
        return [
            (self.batch_size if d == 0 else 1) if size < 0 else size for d, size in enumerate(dims)
        ]

    def _layers(self):
        info = library.LayerInfo()
        for i in range(self._n_layers):
            self._lib.qn_executor_layer(ctypes.byref(info), self._handle, i)
            yield text(info.node), text(info.output.name), self._shape(info.output)

    def output_name_to_node_name(self):
        """Names of all nodes by the names of their outputs."""
        return {output: node for node, output, _ in self._layers()}

    def init_shape_info(self):
        """Fills shape_dicts: shapes of the inputs and of every layer, by name."""
        self.shape_dicts = {name: shape for name, _, shape in self._inputs}
        for node, output, shape in self._layers():
            self.shape_dicts.setdefault(node, shape)
            self.shape_dicts.setdefault(output, shape)
        return self.shape_dicts

    # -- running it --

    @property
    def early_stop_flag(self):
        return bool(self._lib.qn_executor_early_stop(self._handle))

    def _fill(self, tensor, array, i):
        number = NUMBERS.get(array.dtype)
        if number is None or array.ndim > library.MAX_RANK:
            name = self.input_nodes[i] if i < len(self.input_nodes) else i
            raise TypeError(f"input {name!r}: arrays of {array.dtype} cannot be fed")
        tensor.dtype = number
        tensor.rank = array.ndim
        tensor.dims[: array.ndim] = array.shape
        tensor.data = array.ctypes.data

    def _raise(self, status):
        message = text(self._lib.qn_executor_error(self._handle))
        if status == library.CANCELLED:
            raise Cancelled(message)
        raise RuntimeError(message)

    def forward(self, *data):
        """Runs the model with one array for each input, in their order; returns the list of its outputs."""
        arrays = [np.ascontiguousarray(a) if np.ndim(a) else np.asarray(a) for a in data]
        arrays = [a.astype(a.dtype.newbyteorder("=")) if not a.dtype.isnative else a for a in arrays]
        tensors = self._tensors
        if len(arrays) > len(tensors):
            tensors = (library.Tensor * len(arrays))()
        for i, array in enumerate(arrays):
            self._fill(tensors[i], array, i)
        status = self._lib.qn_executor_forward(self._handle, tensors, len(arrays))
        if status != library.OK:
            self._raise(status)
        return [self._output(i) for i in range(len(self.output_node_list))]

    def _output(self, i):
        tensor = self._lib.qn_executor_output(self._handle, i).contents
        kind = NP_TYPE_DICT.get(tensor.dtype)
        if kind is None:
            raise TypeError(f"output {self.output_node_list[i]!r}: numpy has no such type")
        shape = tuple(tensor.dims[: tensor.rank])
        made = np.empty(shape, kind)
        if made.nbytes:
            ctypes.memmove(made.ctypes.data, tensor.data, made.nbytes)
        return made
