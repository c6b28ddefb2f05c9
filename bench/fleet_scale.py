#!/usr/bin/env python3
"""Measures fleets: adding the traces of many ranks of a million calls, and each prepared question over them.

    bench/fleet_scale.py FOLDER [--ranks 8 64] [--calls 1000000] [--memory 3G] [--engine duckdb] [--master URL]

The traces are those of a synthetic ACL program, which gets steps, collectives, messages, digests of what a reduction
gave and times of the device by SQL, with noise that is another one on each rank. Four ranks have a fault each (see
FAULTS), and for each a prepared question has to name the rank. A trace is removed when it is in the fleet's folder;
what FOLDER has already is not made again. Printed are seconds, rows a second, megabytes and the greatest memory of a
process, and how much longer the most ranks take than the fewest. There are eight ranks or more. It needs a Python with
pyarrow and duckdb (ACLTAPE_PYTHON).
"""
import argparse
import csv
import os
import sqlite3
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "python"))
from acltape.fleet.sql import QUESTIONS  # noqa: E402

ACLTAPE = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
PERIODS = 10  # of a step: calls up to a synchronisation
BYTES = 1 << 20
# Which rank of a fleet has what, in parts of the ranks, and the question that finds it.
FAULTS = {"slow_operator": (0.25, "operator_spread"), "slow_link": (0.5, "waits"), "parted": (0.75, "parted_replicas"),
          "other_order": (0.4, "collective_order")}
REDUCE, BROADCAST, SEND, RECEIVE = 9001, 9002, 9003, 9004
OPS = {REDUCE: "HcclAllReduce", BROADCAST: "HcclBroadcast", SEND: "HcclSend", RECEIVE: "HcclRecv"}
# In the synchronisation that ends the n-th period of a step stands this.
PLACES = {2: REDUCE, 4: BROADCAST, 5: SEND, 6: RECEIVE, 8: REDUCE}
NOISE = "(((call_id * 2654435761 + {rank} * 40503 + 1) >> 7) % 1000 - 500) / 25000.0"  # 2 % more or less


def arguments(signature, rank, ranks):
    """Rows of signature_argument for a call of HCCL."""
    peer = (rank + (1 if signature == SEND else -1)) % ranks
    said = {REDUCE: [("sendBuf", "tensor", None), ("recvBuf", "tensor", None), ("count", "int", BYTES // 4),
                     ("dataType", "int", 4), ("op", "int", 0), ("comm", "int", 1)],
            BROADCAST: [("buf", "tensor", None), ("count", "int", BYTES // 4), ("dataType", "int", 4),
                        ("root", "int", 0), ("comm", "int", 1)],
            SEND: [("sendBuf", "tensor", None), ("count", "int", BYTES // 4), ("dataType", "int", 4),
                   ("destRank", "int", peer), ("comm", "int", 1)],
            RECEIVE: [("recvBuf", "tensor", None), ("count", "int", BYTES // 4), ("dataType", "int", 4),
                      ("srcRank", "int", peer), ("comm", "int", 1)]}[signature]
    for position, (name, kind, value) in enumerate(said):
        tensor = kind == "tensor"
        yield (signature, position, name, "in", kind, 1 if tensor else None, 0 if tensor else None, value, None, None,
               None)


def make_base(path, calls):
    """The program with steps and collectives, before a rank makes it its own."""
    subprocess.run([os.path.join(os.path.dirname(ACLTAPE), "synthetic_trace_file"), path, str(calls), "--acl"],
                   check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA synchronous = OFF")
        ends = [row[0] for row in base.execute(
            "SELECT c.call_id FROM call_row c JOIN signature s USING (signature_id) JOIN op o USING (op_id) "
            "WHERE o.name = 'aclrtSynchronizeStream' ORDER BY 1")]
        steps = [(place, ends[place * PERIODS - 1] + 1 if place else 1, ends[place * PERIODS + PERIODS - 1])
                 for place in range(len(ends) // PERIODS)]
        base.executemany("INSERT INTO step VALUES (?, ?, ?, 'range:step')", steps)
        base.executemany("INSERT INTO op VALUES (?, 'hccl', ?, '', '')", OPS.items())
        base.executemany("INSERT INTO signature VALUES (?, ?)", [(op, op) for op in OPS])
        placed = [(PLACES[place % PERIODS], call) for place, call in enumerate(ends) if place % PERIODS in PLACES]
        base.executemany("UPDATE call_row SET signature_id = ?, buffers = '[1]' WHERE call_id = ?", placed)
        base.execute("UPDATE call_row SET begin_ns = call_id * 100000, bits = CASE WHEN signature_id IN "
                     "(SELECT signature_id FROM signature JOIN op USING (op_id) WHERE dialect = 'aclnn') "
                     "THEN bits | 4 ELSE bits END")
    return len(steps)


def make_rank(base, path, rank, ranks, steps, planted):
    """The base as one rank has it. planted: names of FAULTS by rank."""
    faulty = {planted.get(rank)}
    subprocess.run(["cp", base, path], check=True)
    noise = NOISE.format(rank=rank)
    with sqlite3.connect(path) as trace:
        trace.execute("PRAGMA synchronous = OFF")
        trace.execute("PRAGMA journal_mode = OFF")
        run = trace.execute
        trace.create_function("device_ns", 3, device_ns(rank, [
            name for name, sender in (("HcclSend", rank), ("HcclRecv", (rank - 1) % ranks))
            if planted.get(sender) == "slow_link"]))
        for signature in OPS:
            trace.executemany(f"INSERT INTO signature_argument VALUES ({', '.join('?' * 11)})",
                              arguments(signature, rank, ranks))
        run("INSERT INTO communicator VALUES (1, 1, 5, 'world', ?, ?)", (rank, ranks))
        run("UPDATE process SET rank = ?", (rank,))
        run("CREATE TEMP TABLE usual AS SELECT signature_id, op_id, name, dialect, CASE name WHEN 'aclnnMatmul' "
            "THEN 40000 WHEN 'aclnnAdd' THEN ? ELSE 2000 END AS ns FROM signature JOIN op USING (op_id)",
            (14000 if "slow_operator" in faulty else 10000,))
        run("CREATE UNIQUE INDEX usual_by_signature ON usual(signature_id)")
        if "other_order" in faulty:
            step = steps // 2
            first, last = run("SELECT first_call, last_call FROM step WHERE step = ?", (step,)).fetchone()
            for one, other in ((REDUCE, -1), (BROADCAST, REDUCE), (-1, BROADCAST)):
                run("UPDATE call_row SET signature_id = ? WHERE call_id = (SELECT min(call_id) FROM call_row WHERE "
                    "signature_id = ? AND call_id BETWEEN ? AND ?)", (other, one, first, last))
        run(f"UPDATE call_row SET duration_ns = CAST((SELECT ns FROM usual u WHERE u.signature_id = "
            f"call_row.signature_id) * (1 + {noise}) AS INTEGER)")
        run("INSERT INTO device_span SELECT call_id, 1, begin_ns, begin_ns + device_ns(call_id, name, ns), 0 "
            "FROM call_row JOIN usual USING (signature_id) WHERE dialect IN ('aclnn', 'hccl')")
        parted = steps // 3 if "parted" in faulty else steps + 1
        run("INSERT INTO snapshot SELECT c.call_id, 1, 'after', 16777217, printf('%032x', c.call_id "
            "+ CASE WHEN s.step >= ? THEN 1000000000 ELSE 0 END), ?, 0, 0, 0, 1, .5, 1, 0, 0 "
            "FROM step s JOIN call_row c ON c.call_id BETWEEN s.first_call AND s.last_call WHERE c.signature_id = ?",
            (parted, BYTES, REDUCE))
        run("DELETE FROM signature_total")
        run("INSERT INTO signature_total SELECT signature_id, count(*), min(call_id), sum(bits >> 2 & 1), "
            "sum(duration_ns * (bits >> 2 & 1)), min(duration_ns), max(duration_ns) FROM call_row GROUP BY 1")
        run("INSERT INTO step_total SELECT s.step, s.first_call, s.last_call, count(*), sum(c.bits >> 2 & 1), "
            "max(c.begin_ns + c.duration_ns) - min(c.begin_ns), sum(c.duration_ns * (c.bits >> 2 & 1)), 9, 0, 0 "
            "FROM step s JOIN call_row c ON c.call_id BETWEEN s.first_call AND s.last_call GROUP BY s.step")


def device_ns(rank, slow):
    """How long a call is on the device: collectives wait, the last of the ranks for nobody. slow: names of messages."""
    def answer(call, name, usual):
        noise = 1 + (((call * 2654435761 + rank * 69069) >> 7) % 1000 - 500) / 25000
        if name in ("HcclSend", "HcclRecv"):
            return int(50000 * noise * (4 if name in slow else 1))
        if name.startswith("Hccl"):
            waits = (call * 40503 + rank * 7919) % 64 * 500
            return int(200000 * (1 + (noise - 1) / 10)) + waits
        return int(usual * noise)
    return answer


def measured(*words):
    """Seconds, the greatest memory in MiB, and what was printed."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"bench/fleet_scale.py: {' '.join(words)} failed")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, said


def make_fleet(folder, traces, ranks, options):
    """Adds the ranks that are missing, a few at a time."""
    planted = {int(share * ranks): name for name, (share, _) in FAULTS.items()}
    base = os.path.join(traces, "base.db")
    steps, seconds, rows, trace_bytes, file_bytes, most = None, 0.0, 0, 0, 0, 0.0
    missing = [rank for rank in range(ranks) if not os.path.exists(f"{folder}/manifest/night.{rank}.json")]
    for first in range(0, len(missing), 8):
        steps = steps or (os.path.exists(base) and os.remove(base)) or make_base(base, options.calls)
        paths = []
        for rank in missing[first:first + 8]:
            paths.append(os.path.join(traces, f"night.rank{rank}.db"))
            make_rank(base, paths[-1], rank, ranks, steps, planted)
            trace_bytes += os.path.getsize(paths[-1])
        took, memory, said = measured(ACLTAPE, "fleet", "add", folder, *paths, "--format", "csv")
        seconds, most = seconds + took, max(most, memory)
        for row in csv.DictReader(said.splitlines()):
            rows, file_bytes = rows + int(row["rows"]), file_bytes + int(row["bytes"])
        for path in paths:
            os.remove(path)
    if missing:
        print(f"{ranks} ranks: {rows} rows of {trace_bytes >> 20} MiB of traces became {file_bytes >> 20} MiB in "
              f"{seconds:.1f} s, {rows / seconds / 1e6:.2f} million rows a second; a process had {most:.0f} MiB")
    return {question: {planted_rank for planted_rank, name in planted.items() if FAULTS[name][1] == question}
            for question in QUESTIONS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--memory", default="3G")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--master", default="")
    options = parser.parse_args()
    asked = ["--memory", options.memory, "--engine", options.engine]
    asked += ["--master", options.master] if options.master else []
    os.makedirs(options.folder, exist_ok=True)
    times = {}
    for ranks in options.ranks:
        folder = os.path.join(options.folder, f"of_{ranks}")
        expected = make_fleet(folder, options.folder, ranks, options)
        for question in QUESTIONS:
            text = f"SELECT * FROM {question} WHERE finding = 1"
            took, memory, said = measured(ACLTAPE, "fleet", "ask", folder, text, "--format", "csv", *asked)
            found = {int(row["rank"]) for row in csv.DictReader(said.splitlines())}
            right = found == expected[question] or question == "outliers"  # sees what operator_spread sees
            times.setdefault(question, []).append(took)
            print(f"{ranks:4} ranks  {question:17} {took:7.1f} s {memory:6.0f} MiB  ranks found {sorted(found)}"
                  f"{'' if right else '  expected ' + str(sorted(expected[question]))}", flush=True)
    if len(options.ranks) > 1:
        for question, (few, *_, many) in times.items():
            print(f"{question:17} {many / few:.1f} times as long for {options.ranks[-1] / options.ranks[0]:.0f} times "
                  "the ranks")
        few, many = (sum(column) for column in zip(*((one[0], one[-1]) for one in times.values())))
        print(f"all questions     {many / few:.1f} times as long")


if __name__ == "__main__":
    main()
