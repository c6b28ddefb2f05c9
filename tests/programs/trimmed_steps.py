"""Each step of a recorded ACL program, trimmed, is a trace of its own that gives its recorded results.

The tests that record programs call check(), so that no program is recorded for this alone.
"""
import json
import os
import sqlite3
import subprocess

import acl_programs

ACLTAPE = os.environ.get("ACLTAPE_BINARY", os.path.join(acl_programs.SOURCE, "build", "bin", "acltape"))

# Programs that cannot be trimmed, or one step of them ("FILE step:1"): the exit code, and words of the one
# sentence that says why. What is not here is trimmed.
_CHOICES = (2, "the device chooses what runs")
REFUSED = {
    "conditional_graph.cpp": _CHOICES,
    "built_model.cpp": _CHOICES,
    "conformance/label_switch.c": _CHOICES,
    "conformance/graph_condition.c": _CHOICES,
    "conformance/graph_built.c": _CHOICES,
    "conformance/stream_abort.c": (2, "that nothing in the trace releases"),
    # The device has switched a task off, which a replay leaves out (docs/interface_functions.md).
    "conformance/graph_disable_task.c step:1": (1, "do not give their recorded results"),
    # It reads the device's status, which a replay leaves out.
    "conformance/device_saturation.c step:1": (1, "do not give their recorded results"),
    # Steps of calls that are no device work.
    "conformance/notify_reset.c step:0": (2, "picks no call"),
    "conformance/error_messages.c step:0": (2, "picks no call"),
    # Batches of copies are left out, and it makes nothing else.
    "conformance/copy_batches.c": (2, "holds no device work at the ACL level"),
    # A graph draws twice into the same memory.
    "memory_tasks.cpp": (2, "draws random numbers in a graph"),
    "error_handling.cpp": (2, "fails as it did in the recording"),
    # It uses memory far inside of its reservation: a replay leaf by leaf takes all that lies before it.
    "virtual_memory.cpp": (4, "out of memory"),
}

# Programs of which `acltape steps` sees calls repeat that are no device work, always or in some runs, so that
# leaves have no steps.
WITHOUT_STEPS = {"conformance/event_query.c", "conformance/event_wait_limits.c", "conformance/graph_listing.c",
                 "conformance/stream_priorities.c", "conformance/stream_query.c", "error_handling.cpp",
                 "planted_race.cpp --event --capture", "value_waits.cpp"}

# Programs of which threads put their calls between each other in another order each time: the steps of the
# leaves may be others than those of the calls.
THREADED = {"multi_stream.cpp --threads"}

# Steps of which an operator has no result in the recording.
WITHOUT_RESULT = {"exception_info.cpp step:0"}  # it failed, and so did the recorder's copy of its result


def _run(*words):
    command = [ACLTAPE, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=acl_programs.environment())
    return done, f"$ {' '.join(command)}\n{done.stdout}{done.stderr}"


def _operators(trace):
    """How many calls of operators the trace holds."""
    connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM call WHERE op LIKE 'aclnn%'").fetchone()[0]
    finally:
        connection.close()


def selections(trace, source, options=(), process=()):
    """A selection for each step. A program without steps is taken as one."""
    done, evidence = _run("steps", trace, "--format", "json", *process)
    if done.returncode == 3 or " ".join((source, *options)) in WITHOUT_STEPS:
        return ["1-"]
    assert done.returncode == 0, evidence
    count, = (row["value"] for row in json.loads(done.stdout)["steps"] if row["fact"] == "steps")
    return [f"step:{step}" for step in range(count)]


def check(test, trace, source, options=(), process=()):
    """Trims each step of the program's trace and replays what was trimmed."""
    small = trace + ".trimmed.db"
    for calls in selections(trace, source, options, process):
        if os.path.exists(small):
            os.remove(small)
        with test.subTest(trimmed=source, options=options, calls=calls, process=process):
            refused = REFUSED.get(source) or REFUSED.get(f"{source} {calls}")
            done, evidence = _run("trim", trace, "--calls", calls, "-o", small, *process)
            if done.returncode == 2 and " ".join((source, *options)) in THREADED:
                test.assertRegex(done.stderr, "picks no call|no steps to pick from", evidence)
                continue
            if refused:
                test.assertEqual(done.returncode, refused[0], evidence)
                test.assertIn(refused[1], done.stderr, evidence)
                test.assertEqual(len(done.stderr.splitlines()), 1, evidence)
                test.assertFalse(os.path.exists(small), evidence)
                continue
            if done.returncode == 125:  # a step that only brings values from the host, such as the weights of a model
                test.assertIn("have no result in the recording", done.stderr, evidence)
                if f"{source} {calls}" not in WITHOUT_RESULT:
                    test.assertEqual(_operators(small), 0, evidence)
                continue
            test.assertEqual(done.returncode, 0, evidence)
            done, evidence = _run("replay", small, "--format", "json")
            if done.returncode == 125:  # the trimmed calls are copies, of which leaves alone have results
                done, evidence = _run("replay", small, "--streams", "leaves", "--format", "json")
            test.assertEqual(done.returncode, 0, evidence)
            summary = {row["quantity"].strip(): row["value"] for row in json.loads(done.stdout)["summary"]}
            test.assertGreater(summary["outputs equal"], 0, evidence)
            for quantity in ("outputs different", "outputs without a reference", "unknown, left out",
                             "substituted by recorded outputs"):
                test.assertEqual(summary[quantity], 0, evidence)
