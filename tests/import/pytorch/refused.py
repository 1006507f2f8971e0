"""refused.py: files that are refused, with one line that says why: unknown operators all at once, bombs, pickles that ask for
more than tensors, files that break off. They are made of golden cases; nothing of PyTorch is needed."""

import os
import resource
import subprocess
import sys
import tempfile
import zipfile

QUENCH = os.environ["QUENCH"]
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
# Of address space: what a bomb unpacks to has no place there.
ROOM = 1 << 30
BOMB = 1100


def convert(path):
    done = subprocess.run([QUENCH, "convert", path, path + ".onnx", "--no-compare", "-q"], capture_output=True, text=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)))
    lines = [line for line in done.stderr.splitlines() if "warning" not in line]
    return done.returncode, "\n".join(lines)


def expect(path, code, *words):
    have, message = convert(path)
    print(f"{os.path.basename(path)}: {have}: {message[:150]}")
    assert have == code and message.count("\n") == 0 and all(word in message for word in words), (have, message)


def changed(folder, case, name, entry, change):
    """A copy of the case with an entry that the function changes."""
    path = os.path.join(folder, name)
    with zipfile.ZipFile(os.path.join(CASES, case)) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            data = source.read(info)
            target.writestr(info.filename, change(data) if info.filename.endswith(entry) else data)
    return path


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = changed(folder, "rnn.pt2", "operators.pt2", "model.json", lambda data: data.replace(
            b"aten.rnn_tanh.input", b"aten.stft.default").replace(b"aten.zeros.default", b"own.frobnicate.default"))
        expect(path, 3, "'stft' is not read: compute it before the model", "'own.frobnicate' is not read")
        path = changed(folder, "no_gradients.pt2", "branch.pt2", "model.json", lambda data: data.replace(
            b"aten.add.Tensor", b"higher_order.cond"))
        expect(path, 3, "branches and loops that depend on what the input holds")
        path = changed(folder, "rnn.pt2", "bomb.pt2", "weight_0", lambda _: bytes(BOMB << 20))
        expect(path, 1, "weight_0' claims an impossible size")
        for name, module, hint in (("evil", "posix\nsystem", "code is never run"),
                                   ("quantized", "torch._utils\n_rebuild_qtensor", "give the float model"),
                                   ("whole", "torch.nn.modules.linear\nLinear", "state_dict")):
            path = changed(folder, "lstm_script.pt", name + ".pt", "/data.pkl", lambda _: f"\x80\x02c{module}\n.".encode("latin1"))
            expect(path, 3, module.replace("\n", "."), hint)
        for case in ("rnn.pt2", "flat.pt2", "lstm_script.pt"):
            with open(os.path.join(CASES, case), "rb") as file:
                data = file.read()
            for part in range(1, 8):
                path = os.path.join(folder, f"{part}_{case}")
                with open(path, "wb") as file:
                    file.write(data[:len(data) * part // 8])
                code, message = convert(path)
                assert code in (1, 3) and message.count("\n") == 0 and message, (case, part, code, message)
        print("files that break off: each with its message")


if __name__ == "__main__":
    main()
    sys.exit(0)
