"""Runs quench's command with the infer functions of a Python script: `quench quant -uds script.py` starts this.

The command itself is the same C code, loaded as a library: it parses the options and calls back here when the
function is to run."""
import contextlib
import ctypes
import importlib.util
import os
import sys
import tempfile
import traceback

from quench import library, torch_model


class Unknown(Exception):
    """The script has no such function."""


class Returned(Exception):
    """What a function returned is no accuracy."""


def guard_exit():
    """os._exit ends the process before anything is written: that must not look like success. Children may use it."""
    leave, own = os._exit, os.getpid()

    def end(code):
        if os.getpid() == own:
            print("quench: the script ended the program (os._exit): nothing is written", file=sys.stderr)
            sys.stderr.flush()
            leave(code or 1)
        leave(code)

    os._exit = end


class Host:
    """Loads the script when the first function is asked for, and calls its functions."""

    def __init__(self, lib):
        self.lib = lib
        self.loaded = None
        self.exit_code = None

    def load(self, path):
        if self.loaded == path:
            return
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        name = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        self.loaded = path

    def find(self, path, name):
        from onnx_quantize_tool.common.register import onnx_infer_func

        self.load(path)
        if name not in onnx_infer_func and name in self.built_in():
            return None
        if name not in onnx_infer_func:
            known = ", ".join(sorted(onnx_infer_func)) or "none"
            raise Unknown(
                f"{path} registers no infer function '{name}' with onnx_infer_func (it has: {known})"
            )
        return onnx_infer_func[name]

    def built_in(self):
        names = iter(range(64))
        return {name.decode() for name in iter(lambda: self.lib.qn_infer_name(next(names)), None)}

    def call(self, name, handle, metric):
        from quench.executor import Executor

        executor = Executor(self.lib, handle)
        function = self.find(executor.user_defined_script, name)
        if function is None:
            if self.lib.qn_infer_call(metric, handle, name.encode()) != library.OK:
                executor._raise(library.INVALID)
            return
        with contextlib.ExitStack() as stack:
            if executor._quiet:
                hidden = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(hidden))
            result = function(executor)
        sys.stdout.flush()
        if result is not None:
            metric[0] = self.number(name, result)

    @staticmethod
    def number(name, result):
        try:
            if isinstance(result, (str, bytes)):
                raise TypeError
            if isinstance(result, (list, tuple)) and len(result) == 1:
                return Host.number(name, result[0])
            if getattr(result, "size", 0) == 1 and hasattr(result, "reshape"):
                result = result.reshape(-1)[0]
            return float(result)
        except (TypeError, ValueError):
            raise Returned(
                f"infer function '{name}' returned {type(result).__name__} {str(result)[:40]!r}: "
                "one number, which is its accuracy, or None is expected"
            ) from None

    def run(self, user, handle, metric):
        """A qn_infer_fn."""
        name = ctypes.cast(user, ctypes.c_char_p).value.decode()
        try:
            self.call(name, handle, metric)
            return library.OK
        except SystemExit as error:
            self.exit_code = error.code
            return self.fail(handle, f"infer function '{name}' ended the program")
        except KeyboardInterrupt:
            return self.lib.qn_executor_fail(handle, library.CANCELLED, b"cancelled")
        except Returned as error:
            return self.fail(handle, str(error))
        except Unknown as error:
            return self.fail(handle, str(error), library.OPTION)
        except BaseException as error:
            self.show()
            words = traceback.format_exception_only(type(error), error)[-1].strip()
            return self.fail(handle, f"infer function '{name}': {words}")

    def show(self):
        """The user's own traceback: without the frames of this package."""
        kind, error, frames = sys.exc_info()
        here = os.path.dirname(os.path.abspath(__file__))
        while frames and frames.tb_frame.f_code.co_filename.startswith((here, "<frozen")):
            frames = frames.tb_next
        sys.stdout.flush()
        traceback.print_exception(kind, error, frames)

    def fail(self, handle, message, status=library.INVALID):
        line = message.replace("\n", " ").encode("utf-8", "surrogateescape")
        return self.lib.qn_executor_fail(handle, status, line)


def main(argv):
    if importlib.util.find_spec("numpy") is None:
        print(
            f"quench: {sys.executable} has no numpy, which scripts (-uds) need "
            "(QUENCH_PYTHON names another interpreter)",
            file=sys.stderr,
        )
        return 1
    guard_exit()
    lib = library.load(os.environ.get("QUENCH_COMMAND"))
    host = Host(lib)
    with tempfile.TemporaryDirectory() as folder:
        if "QUENCH_MODEL_NAME" in os.environ:
            code = torch_model.make(host, folder)
            if code is not None:
                return code
        return run_command(host, lib, argv)


def run_command(host, lib, argv):
    callback = library.INFER_FN(host.run)
    words = [os.fsencode(word) for word in argv]
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    code = lib.quench_command(len(words), array, callback)
    if isinstance(host.exit_code, int) and host.exit_code:
        return host.exit_code & 255
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
