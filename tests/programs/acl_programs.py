"""The ACL programs of this folder: what they are, how they are built, what they print.

They know nothing of acltape: a plain compiler line against the SDK builds them. The environment
names the SDK (ACLTAPE_SDK) and the compilers (ACLTAPE_CC, ACLTAPE_CXX).
"""
import collections
import os
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(FOLDER))
SDK = os.environ.get("ACLTAPE_SDK", os.path.join(SOURCE, "build", "sdk"))
LIBRARIES = os.path.join(SDK, "lib64")
COMPILERS = {".c": os.environ.get("ACLTAPE_CC", "cc"), ".cpp": os.environ.get("ACLTAPE_CXX", "c++")}

# One way to run a program: it prints expected/<name>.txt.
Run = collections.namedtuple("Run", "name source options environment", defaults=((), {}))

RUNS = (
    Run("single_op", "single_op.c"),
    Run("callbacks", "callbacks.c"),
    Run("memory_copies", "memory_copies.c"),
    Run("pageable_steps", "pageable_steps.cpp"),
    Run("repeated_executor", "repeated_executor.cpp"),
    Run("blocked_weights", "blocked_weights.cpp"),
    Run("task_queue", "task_queue.cpp"),
    Run("multi_stream", "multi_stream.cpp"),
    Run("multi_stream_threads", "multi_stream.cpp", ("--threads",)),
    Run("capture_fork_join", "capture_fork_join.cpp"),
    Run("task_update", "task_update.cpp"),
    Run("error_handling", "error_handling.cpp", (),
        {"ACLTAPE_SOFT_STREAMS": "12", "ACLTAPE_SOFT_MEMORY": "64M"}),
    Run("planted_race", "planted_race.cpp", ("--event",)),
    Run("planted_race", "planted_race.cpp", ("--event", "--capture")),
    Run("mixed_work", "mixed_work.cpp"),
    Run("mixed_work", "mixed_work.cpp", ("--eager",)),
    Run("seed_streams", "seed_streams.cpp"),
    Run("seed_streams", "seed_streams.cpp", ("--capture",)),
    Run("dump_callback", "dump_callback.cpp"),
    Run("tensor_channel", "tensor_channel.cpp"),
    Run("queue_routes", "queue_routes.cpp"),
    Run("workload", "workload.cpp"),
    Run("workload", "workload.cpp", ("--capture",)),
)

# Programs of which a test of their own knows more: several processes, planted faults.
SHARED_MEMORY = Run("shared_memory", "shared_memory.cpp")
EXCEPTION_INFO = Run("exception_info", "exception_info.cpp", (),
                     {"ACLTAPE_SOFT_FAULTS": "aclnnMuls #2 fail=507015"})

# Functions that a program needs and that the SDK exports only once they work.
TASK_UPDATES = ("aclmdlRICaptureTaskGrpBegin", "aclmdlRICaptureTaskGrpEnd",
                "aclmdlRICaptureTaskUpdateBegin", "aclmdlRICaptureTaskUpdateEnd")
NEEDS = {"task_update.cpp": TASK_UPDATES, "mixed_work.cpp": TASK_UPDATES}


def exported(library):
    """The names that a library of the SDK defines."""
    listing = subprocess.run(["nm", "-D", "--defined-only", os.path.join(LIBRARIES, library)],
                             capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listing.splitlines()}


def missing(source):
    """The functions that the program needs and the SDK lacks."""
    needs = NEEDS.get(source, ())
    return sorted(set(needs) - exported("libascendcl.so")) if needs else []


def build_line(source, binary, compiler=None, dlopen=False, libraries=LIBRARIES, options=()):
    line = [compiler or COMPILERS[os.path.splitext(source)[1]], *options, os.path.join(FOLDER, source),
            "-I" + os.path.join(SDK, "include")]
    if dlopen:
        line += ["-DUSE_DLOPEN", "-ldl"]
    else:
        line += ["-L" + libraries, "-lascendcl", "-lopapi", "-lnnopbase", "-lacl_op_compiler"]
    return line + ["-pthread", "-o", binary]


def environment(extra=None):
    """The environment in which a program finds the SDK and no setting of the soft device."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith("ACLTAPE_SOFT_")}
    result["LD_LIBRARY_PATH"] = LIBRARIES
    result.update(extra or {})
    return result
