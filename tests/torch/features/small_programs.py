"""Code that files of small programs share: a table of them, how they print values, and ways to run them.

A file marks each program with `@program` and ends with `main(arguments, run)`, which takes

    (nothing)           prints the names
    NAME                runs one
    --each [NAME..]     runs each in a child of this process; prints JSON
"""
import hashlib
import json
import os
import sys
import tempfile

import torch

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def show(*values):
    print(*[text(value) for value in values], flush=True)


def text(value):
    """Values as they are and tensors by a hash of their bytes, so that one changed bit shows."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().resolve_conj().contiguous()
        data = value.view(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
        return f"{tuple(value.shape)} {value.dtype} {hashlib.sha1(data).hexdigest()[:12]}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {text(value[key])}" for key in value) + "}"
    return str(value)


def run_in_child(name, run):
    """Exit code, output and messages of `run(name)` in a forked child."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            code = 1
            try:
                run(name)
                code = 0
            except SystemExit as leave:
                code = leave.code
            except BaseException as error:  # pylint: disable=broad-except
                print(type(error).__name__, error, flush=True)
            sys.stdout.flush()
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return {"code": status, "output": output.read().decode(errors="replace"),
                "errors": errors.read().decode(errors="replace")}


def main(arguments, run):
    if not arguments:
        print("\n".join(PROGRAMS))
    elif arguments[0] == "--each":
        names = arguments[1:] or list(PROGRAMS)
        print(json.dumps({name: run_in_child(name, run) for name in names}))
    else:
        run(arguments[0])
