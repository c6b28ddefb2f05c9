"""The table of the conformance runner: own programs in the style of a vendor's samples, by interface
group. A program is one row here and one file; nothing else names it.

    conformance.py page docs/soft_device.md     writes the page's table anew
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import acl_programs

# The ways in which each program runs: the name of the pass, and what the environment adds. The settings that show
# mistakes share a pass, because a start of the kernels is most of its time.
PASSES = (
    ("plain", {}),
    ("poison, jitter, small", {"ACLTAPE_SOFT_POISON": "1", "ACLTAPE_SOFT_JITTER": "7",
                               "ACLTAPE_SOFT_PROFILE": "small"}),
)
REPLAYS = ("eager", "captured")

# A program of an interface group. `left_out` names functions that a replay leaves out and says so, by
# which its results differ (docs/interface_functions.md); `refused` is the exit code with which a replay
# refuses the program. Both need a `reason`, which goes to the page. A program is not exempt from
# anything else.
Program = collections.namedtuple("Program", "group source options environment left_out refused reason",
                                 defaults=((), {}, (), None, ""))

# Groups of the interface, in parts that are tests of their own.
PARTS = {
    "Runtime": ("init", "device", "context", "stream", "event", "notify", "label", "callback", "error",
                "misc", "profiling", "channel", "queue", "dump"),
    "Memory": ("memory", "memcpy", "kernel"),
    "Graphs": ("model_ri",),
    "Calls": ("aclnn", "tensor_desc", "aclop"),
    "Operators": ("math", "nn", "transformer", "cv"),
}
DOMAINS = PARTS["Operators"]

PROGRAMS = (
    Program("init", "conformance/init_twice.c"),
    Program("init", "conformance/init_configuration.c"),
    Program("device", "conformance/device_query.c"),
    Program("device", "conformance/device_identity.c"),
    Program("device", "conformance/device_core_limits.c"),
    Program("device", "conformance/device_reset.c"),
    Program("device", "conformance/device_peers.c"),
    Program("device", "conformance/device_overflow.c", left_out=("aclrtGetOverflowStatus",),
            reason="the status tells of overflows on the whole device"),
    Program("device", "conformance/device_saturation.c", left_out=("aclrtGetOverflowStatus",),
            reason="the status tells of overflows on the whole device"),
    Program("context", "conformance/context_switch.cpp"),
    Program("context", "conformance/context_default_stream.c"),
    Program("context", "conformance/context_options.c"),
    Program("stream", "conformance/stream_priorities.c"),
    Program("stream", "conformance/stream_query.c"),
    Program("stream", "conformance/stream_value_ring.c"),
    Program("stream", "conformance/stream_attributes.c"),
    Program("stream", "conformance/stream_abort.c", left_out=("aclrtStreamAbort",),
            reason="work that a stream dropped is done in a replay"),
    Program("stream", "multi_stream.cpp"),
    Program("stream", "multi_stream.cpp", ("--threads",)),
    Program("stream", "seed_streams.cpp"),
    Program("event", "conformance/event_timing.c"),
    Program("event", "conformance/event_query.c"),
    Program("event", "conformance/event_reuse.cpp"),
    Program("event", "conformance/event_wait_limits.c"),
    Program("event", "planted_race.cpp", ("--event",)),
    Program("notify", "conformance/notify_handshake.c"),
    Program("notify", "conformance/notify_reset.c"),
    Program("label", "conformance/label_switch.c"),
    Program("callback", "callbacks.c"),
    Program("callback", "conformance/callback_host_function.c"),
    Program("callback", "conformance/callback_report_thread.c"),
    Program("error", "error_handling.cpp", (), {"ACLTAPE_SOFT_STREAMS": "12", "ACLTAPE_SOFT_MEMORY": "64M"}),
    Program("error", "conformance/error_messages.c"),
    Program("misc", "conformance/versions.c"),
    Program("misc", "conformance/half_numbers.c"),
    Program("channel", "tensor_channel.cpp"),
    Program("queue", "queue_routes.cpp"),
    Program("dump", "dump_callback.cpp"),
    Program("profiling", "conformance/profiling_session.c"),

    Program("memory", "conformance/memory_information.c"),
    Program("memory", "conformance/memory_virtual.c"),
    Program("memory", "conformance/memory_registered.c"),
    Program("memory", "conformance/memory_kinds.c"),
    Program("memory", "conformance/memory_allocator.cpp"),
    Program("memory", "conformance/memory_pools.c"),
    Program("memcpy", "memory_copies.c"),
    Program("memcpy", "conformance/copy_matrix_rows.c"),
    Program("memcpy", "conformance/copy_batches.c",
            left_out=("aclrtMemcpyBatch", "aclrtMemcpyBatchAsync", "aclrtMemcpyBatchAsyncV2"),
            reason="batches of copies are left out"),
    Program("memcpy", "conformance/copy_fills.c"),
    Program("memcpy", "conformance/copy_pipeline.c"),
    Program("memcpy", "conformance/copy_reduce.c"),
    Program("kernel", "conformance/random_numbers.c"),
    Program("kernel", "conformance/random_update.c", left_out=("aclrtTaskUpdateAsync",),
            reason="new parameters of a random task lie in memory, with the addresses that they had"),
    Program("kernel", "conformance/kernel_time_limits.c"),

    Program("model_ri", "capture_fork_join.cpp"),
    Program("model_ri", "task_update.cpp"),
    Program("model_ri", "mixed_work.cpp"),
    Program("model_ri", "conformance/graph_first.c"),
    Program("model_ri", "conformance/graph_modes.c"),
    Program("model_ri", "conformance/graph_listing.c"),
    Program("model_ri", "conformance/graph_external_events.c"),
    Program("model_ri", "conformance/graph_disable_task.c",
            left_out=("aclmdlRITaskDisable", "aclmdlRIUpdate"),
            reason="a task that is switched off stays in the replayed graph"),
    Program("model_ri", "conformance/graph_condition.c"),
    Program("model_ri", "conformance/graph_built.c"),

    Program("aclnn", "single_op.c"),
    Program("aclnn", "repeated_executor.cpp"),
    Program("aclnn", "task_queue.cpp"),
    Program("aclnn", "conformance/executor_lists.cpp"),
    Program("aclnn", "conformance/tensor_getters.c"),
    Program("aclnn", "conformance/tensor_lists.cpp"),
    Program("tensor_desc", "conformance/descriptor_getters.c"),
    Program("aclop", "conformance/operator_by_name.c"),
    Program("aclop", "conformance/operator_attributes.c"),

    Program("math", "conformance/math_reductions.cpp"),
    Program("math", "conformance/math_sorting.cpp"),
    Program("math", "conformance/math_selection.cpp"),
    Program("math", "conformance/math_sizes_from_data.cpp"),
    Program("math", "conformance/math_products.cpp"),
    Program("math", "conformance/math_half_complex.cpp"),
    Program("math", "conformance/math_random.cpp"),
    Program("nn", "conformance/nn_classifier.cpp"),
    Program("nn", "conformance/nn_normalisation.cpp"),
    Program("nn", "conformance/nn_training.cpp"),
    Program("nn", "conformance/nn_optimizer.cpp"),
    Program("nn", "conformance/nn_quantised.cpp"),
    Program("nn", "conformance/nn_four_bits.cpp"),
    Program("transformer", "conformance/transformer_attention.cpp"),
    Program("transformer", "conformance/transformer_experts.cpp"),
    Program("transformer", "workload.cpp", ("--capture",)),
    Program("transformer", "decoder.cpp"),
    Program("transformer", "decoder.cpp", ("--captured",)),
    Program("cv", "conformance/cv_resize.cpp"),
    Program("cv", "conformance/cv_gradients.cpp"),
)

BEGIN, END = "<!-- programs by group: begin -->\n", "<!-- programs by group: end -->\n"
COLUMNS = 120  # as scripts/format fills documents


def title(program):
    return " ".join((os.path.basename(program.source), *program.options))


def undefined(source):
    """The names that a program takes from libraries; it is compiled without being linked."""
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "program.o")
        compiler = acl_programs.COMPILERS[os.path.splitext(source)[1]]
        subprocess.run([compiler, "-c", os.path.join(acl_programs.FOLDER, source), "-o", made,
                        "-I" + os.path.join(acl_programs.SDK, "include")], check=True)
        listing = subprocess.run(["nm", "-u", made], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in listing.splitlines()}


def interface():
    """Returns the functions of each group that a library of the SDK exports; operators by their domain."""
    exported = set()
    for library in sorted(os.listdir(acl_programs.LIBRARIES)):
        if library.endswith(".so"):
            exported |= acl_programs.exported(library)
    groups = collections.defaultdict(set)
    data = os.path.join(acl_programs.SOURCE, "acl", "data")
    with open(os.path.join(data, "acl_abi.json")) as file:
        for function in json.load(file)["functions"]:
            if function["name"] in exported:
                groups[function["group"]].add(function["name"])
    with open(os.path.join(data, "aclnn_ops.json")) as file:
        for operator in json.load(file):
            if operator["op"] in exported:
                groups[operator["domain"]].add(operator["op"])
    return groups


def table():
    """The page's table and what stands below it, as lines."""
    sources = sorted({program.source for program in PROGRAMS})
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        met = set().union(*pool.map(undefined, sources))
    known = [group for part in PARTS.values() for group in part]
    lines = ["| group | programs | functions met | of exported | passes |", "|---|---|---|---|---|"]
    sums = [0, 0, 0, 0]
    groups = interface()
    for group in known + sorted(set(groups) - set(known)):
        own = [program for program in PROGRAMS if program.group == group]
        passes = sum(len(PASSES) + 1 + (0 if program.reason else len(REPLAYS)) for program in own)
        row = [len(own), len(groups[group] & met), len(groups[group]), passes]
        sums = [a + b for a, b in zip(sums, row)]
        lines.append(f"| {group} | " + " | ".join(map(str, row)) + " |")
    lines += ["| all | " + " | ".join(map(str, sums)) + " |", "", "Not replayed:", ""]
    for program in PROGRAMS:
        if program.reason:
            how = f"exit code {program.refused}" if program.refused else \
                "the replay reports " + ", ".join(f"`{name}`" for name in program.left_out)
            lines += textwrap.wrap(f"- `{title(program)}`: {program.reason} ({how}).", COLUMNS, subsequent_indent="  ",
                                   break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def of_page(text):
    """Returns the text between the marks."""
    found = re.search(re.escape(BEGIN) + "\n?(.*?)\n?" + re.escape(END), text, re.DOTALL)
    return found[1].strip("\n") + "\n" if found else None


if __name__ == "__main__":
    _, command, page = sys.argv
    assert command == "page", __doc__
    with open(page) as file:
        old = file.read()
    before, after = old.split(BEGIN)[0], old.split(END)[1]
    with open(page, "w") as file:
        file.write(f"{before}{BEGIN}\n{table()}\n{END}{after}")
