#!/usr/bin/env python3
"""The vendor's command msprof, as far as frameworks call it: it makes the tables of a profile.

A profile is a folder PROF_* with what the soft device noted between aclprofStart and aclprofStop
(runtime/device/profiling_session.h). Names of files and columns follow the vendor's documentation of msprof's
results, so that readers of those open these. What no soft device knows, such as counters of cores, is not there or
"N/A". Times are those of a CPU: they show the order of the work and where the host waits, not a device's speed.
"""
import argparse
import collections
import csv
import json
import os
import re
import statistics
import sys
import time

ABOUT = """The soft device's msprof: writes the tables of profiles that programs collected with aclprofStart."""
RESULTS = "mindstudio_profiler_output"
NO_MODEL = 4294967295
# torch_npu looks each 0.1 s whether there is a table, and gives up when this command has ended and it saw none: the
# command goes on for some such times after its last table.
SEEN_AFTER = 0.4
# The vendor's name of the unit of the device, by words in the name of the operator; the first that fits.
UNITS = (("AI_CORE", re.compile("matmul|mm$|mmv|conv|attention|linear|einsum|mlaprolog|gemm|lstm|gru", re.I)),
         ("AI_VECTOR_CORE", re.compile("")))
COLLECTIVE = re.compile(r"^(?:Hccl|hcom_)")

Task = collections.namedtuple("Task", "device number name kind stream call thread launch begin end")
Call = collections.namedtuple("Call", "number name thread begin end")


class Unusable(Exception):
    """A sentence that says what is wrong with the folder, and what to do."""


def read_table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def is_profile(folder):
    return os.path.isfile(os.path.join(folder, "host", "start_info"))


def profiles_in(folder):
    if is_profile(folder):
        return [folder]
    found = []
    for place, _, _ in os.walk(folder):
        if os.path.basename(place).startswith("PROF_") and is_profile(place):
            found.append(place)
    if not found:
        raise Unusable(f"{folder} holds no profile of the soft device: no folder PROF_* with host/start_info")
    return sorted(found)


class Profile:
    """What the soft device noted; times are nanoseconds since 1970."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "host", "start_info"), encoding="utf-8") as file:
            start = json.load(file)
        to_wall = int(start["collectionTimeBegin"]) * 1000 - int(start["clockMonotonicRaw"])
        self.calls = [Call(int(row["number"]), row["name"], int(row["thread"]), int(row["begin_ns"]) + to_wall,
                           int(row["end_ns"]) + to_wall)
                      for row in read_table(os.path.join(folder, "host", "data", "calls.tsv"))]
        self.tasks, self.devices = [], []
        for name in sorted(os.listdir(folder)):
            if found := re.fullmatch(r"device_(\d+)", name):
                device = int(found[1])
                self.devices.append(device)
                for number, row in enumerate(read_table(os.path.join(folder, name, "data", "tasks.tsv"))):
                    begin, end = int(row["begin_ns"]) + to_wall, int(row["end_ns"]) + to_wall
                    launch = int(row["launch_ns"])
                    self.tasks.append(Task(device, number, row["name"], row["kind"], int(row["stream"]),
                                           int(row["call"]), int(row["thread"]),
                                           launch + to_wall if launch else begin, begin, end))
        self.tasks.sort(key=lambda task: (task.device, task.begin))
        named = re.match(r"PROF_\d+_(\d+)_", os.path.basename(folder))
        self.number = named[1] if named else str(time.time_ns())

    def work(self):
        """The tasks that compute, copy or speak to other ranks."""
        return [task for task in self.tasks if task.kind in ("kernel", "copy", "fill") or is_collective(task)]


def is_collective(task):
    return COLLECTIVE.match(task.name) is not None


def type_of(task):
    return re.sub("^aclnn", "", task.name)


def unit_of(task):
    if is_collective(task):
        return "COMMUNICATION"
    if task.kind == "copy":
        return "MEMCPY_ASYNC"
    if task.kind == "fill":
        return "MEMSET_ASYNC"
    return next(unit for unit, words in UNITS if words.search(task.name))


def microseconds(nanoseconds):
    """As text, since a float has not enough digits for a date."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def duration(nanoseconds):
    return nanoseconds / 1000


def union(intervals):
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def without(intervals, others):
    """The parts of the intervals that no other one covers; both are unions."""
    left = []
    for begin, end in intervals:
        for other_begin, other_end in others:
            if other_end <= begin or other_begin >= end:
                continue
            if other_begin > begin:
                left.append([begin, other_begin])
            begin = max(begin, other_end)
            if begin >= end:
                break
        if begin < end:
            left.append([begin, end])
    return left


class Timeline:
    """The events of msprof_*.json, in the format of Chrome's tracing."""
    HOST, HARDWARE, OVERLAP = 1, 2, 3

    def __init__(self, profile):
        self.profile = profile
        self.events = []
        self.host = self._process(self.HOST, 0, "CANN", "CPU", 1)
        self._calls()
        for device in profile.devices:
            tasks = [task for task in profile.tasks if task.device == device]
            self._tasks(device, tasks)
            self._overlap(device, tasks)

    def _process(self, kind, device, name, label, place):
        pid = os.path.basename(self.profile.folder)
        pid = (sum(map(ord, pid)) % 100000) * 1000 + kind * 32 + device
        for event, arguments in (("process_name", {"name": name}), ("process_labels", {"labels": label}),
                                 ("process_sort_index", {"sort_index": place})):
            self.events.append({"name": event, "pid": pid, "tid": 0, "args": arguments, "ph": "M"})
        return pid

    def _thread(self, pid, tid, name):
        self.events.append({"name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}, "ph": "M"})

    def _span(self, name, pid, tid, begin, end, **arguments):
        self.events.append({"name": name, "pid": pid, "tid": tid, "ts": microseconds(begin),
                            "dur": duration(end - begin), "args": arguments, "ph": "X"})

    def _calls(self):
        for thread in sorted({call.thread for call in self.profile.calls}):
            self._thread(self.host, thread, f"Thread {thread}")
        for call in self.profile.calls:
            self._span(f"AscendCL@{call.name}", self.host, call.thread, call.begin, call.end, **{
                "Thread Id": call.thread, "Mode": "ACL", "level": "acl", "id": call.name, "item_id": "0",
                "connection_id": call.number})

    def _tasks(self, device, tasks):
        pid = self._process(self.HARDWARE, device, "Ascend Hardware", f"NPU {device}", 10 + device)
        for stream in sorted({task.stream for task in tasks}):
            self._thread(pid, stream, f"Stream {stream}")
        for task in tasks:
            connection = device << 32 | task.number
            self._span(task.name, pid, task.stream, task.begin, task.end, **{
                "Model Id": NO_MODEL, "Task Type": unit_of(task) if task.kind != "other" else task.kind,
                "Stream Id": task.stream, "Task Id": task.number, "Batch Id": 0, "Subtask Id": NO_MODEL,
                "connection_id": task.call})
            if task.kind in ("model", "other", "wait", "event_record") and not is_collective(task):
                continue
            flow = {"name": "HostToDevice" + str(connection), "cat": "HostToDevice", "id": str(connection)}
            self.events.append({**flow, "ph": "s", "pid": self.host, "tid": task.thread,
                                "ts": microseconds(task.launch)})
            self.events.append({**flow, "ph": "f", "bp": "e", "pid": pid, "tid": task.stream,
                                "ts": microseconds(task.begin)})

    def _overlap(self, device, tasks):
        pid = self._process(self.OVERLAP, device, "Overlap Analysis", f"NPU {device}", 30 + device)
        computing = union((task.begin, task.end) for task in tasks
                          if task.kind == "kernel" and not is_collective(task))
        speaking = union((task.begin, task.end) for task in tasks if is_collective(task))
        alone = without(speaking, computing)
        busy = union([*computing, *speaking])
        free = without([[busy[0][0], busy[-1][1]]], busy) if busy else []
        for tid, (name, spans) in enumerate((("Computing", computing), ("Communication", speaking),
                                             ("Communication(Not Overlapped)", alone), ("Free", free))):
            self._thread(pid, tid, name)
            for begin, end in spans:
                self._span(name, pid, tid, begin, end)


def op_summary(profile):
    last = {}
    for task in profile.work():
        waited = task.begin - last.get((task.device, task.stream), task.begin)
        last[(task.device, task.stream)] = task.end
        yield {"Device_id": task.device, "Model ID": NO_MODEL, "Task ID": task.number, "Stream ID": task.stream,
               "Op Name": task.name, "OP Type": type_of(task), "OP State": "dynamic", "Task Type": unit_of(task),
               "Task Start Time(us)": microseconds(task.begin), "Task Duration(us)": duration(task.end - task.begin),
               "Task Wait Time(us)": duration(max(waited, 0)), "Block Num": 0, "Mix Block Num": 0,
               "HF32 Eligible": "NO", "Input Shapes": "N/A", "Input Data Types": "N/A", "Input Formats": "N/A",
               "Output Shapes": "N/A", "Output Data Types": "N/A", "Output Formats": "N/A", "Context ID": "N/A"}


def op_statistic(profile):
    times = collections.defaultdict(list)
    for task in profile.work():
        times[(task.device, type_of(task), unit_of(task))].append(duration(task.end - task.begin))
    whole = collections.Counter()
    for (device, _, _), spent in times.items():
        whole[device] += sum(spent)
    for (device, kind, unit), spent in sorted(times.items(), key=lambda row: -sum(row[1])):
        yield {"Device_id": device, "OP Type": kind, "Core Type": unit, "Count": len(spent),
               "Total Time(us)": round(sum(spent), 3), "Min Time(us)": min(spent),
               "Avg Time(us)": round(statistics.fmean(spent), 3), "Max Time(us)": max(spent),
               "Ratio(%)": round(100 * sum(spent) / (whole[device] or 1), 3)}


def api_statistic(profile):
    times = collections.defaultdict(list)
    for call in profile.calls:
        times[call.name].append(duration(call.end - call.begin))
    for name, spent in sorted(times.items(), key=lambda row: -sum(row[1])):
        yield {"Device_id": "host", "Level": "acl", "API Name": name, "Time(us)": round(sum(spent), 3),
               "Count": len(spent), "Avg(us)": round(statistics.fmean(spent), 3), "Min(us)": min(spent),
               "Max(us)": max(spent), "Variance": round(statistics.pvariance(spent), 3)}


def task_time(profile):
    for task in profile.tasks:
        yield {"Device_id": task.device, "kernel_name": task.name,
               "kernel_type": unit_of(task) if task.kind != "other" else "other", "stream_id": task.stream,
               "task_id": task.number, "task_time(us)": duration(task.end - task.begin),
               "task_start(us)": microseconds(task.begin), "task_stop(us)": microseconds(task.end)}


TABLES = (("op_summary", op_summary), ("op_statistic", op_statistic), ("api_statistic", api_statistic),
          ("task_time", task_time))


def write_table(path, rows):
    rows = list(rows)
    if not rows:
        return False
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return True


def export(folder):
    profile = Profile(folder)
    results = os.path.join(folder, RESULTS)
    os.makedirs(results, exist_ok=True)
    with open(os.path.join(results, f"msprof_{profile.number}.json"), "w", encoding="utf-8") as file:
        json.dump(Timeline(profile).events, file)
    written = [name for name, rows in TABLES
               if write_table(os.path.join(results, f"{name}_{profile.number}.csv"), rows(profile))]
    # A reader that waits for tables must not wait for ever.
    if not written:
        with open(os.path.join(results, f"op_summary_{profile.number}.csv"), "w", encoding="utf-8") as file:
            file.write("Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),"
                       "Task Wait Time(us),Block Num\n")
    time.sleep(SEEN_AFTER)
    print(f"{results}: {len(profile.tasks)} tasks of {len(profile.devices)} devices, {len(profile.calls)} calls")


def analyze(folder):
    """The totals of collectives; nothing where there is none."""
    profile = Profile(folder)
    totals = collections.defaultdict(list)
    for task in profile.tasks:
        if is_collective(task):
            totals[task.name].append(task.end - task.begin)
    if not totals:
        print(f"{folder}: no collectives")
        return
    rows = {f"{name}@0": {"Communication Time Info": {
        "Start Timestamp(us)": 0, "Elapse Time(ms)": sum(spent) / 1e6, "Transit Time(ms)": sum(spent) / 1e6,
        "Wait Time(ms)": 0, "Synchronization Time(ms)": 0, "Idle Time(ms)": 0},
        "Communication Bandwidth Info": {}} for name, spent in totals.items()}
    place = os.path.join(folder, "analyze")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "communication.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file)
    print(f"{place}: {len(totals)} collectives")


def main():
    parser = argparse.ArgumentParser(prog="msprof", description=ABOUT)
    parser.add_argument("--export", choices=("on", "off"), default="off", help="write the tables of the profiles")
    parser.add_argument("--analyze", choices=("on", "off"), default="off", help="write the totals of collectives")
    parser.add_argument("--output", metavar="FOLDER", help="a folder PROF_*, or one that holds some")
    chosen, rest = parser.parse_known_args()
    if rest or not chosen.output or "on" not in (chosen.export, chosen.analyze):
        print("msprof: the soft device's msprof knows --export=on and --analyze=on with --output=FOLDER alone; a "
              "program collects a profile by itself, with its framework's profiler or aclprofStart"
              + (f" (given besides: {' '.join(rest)})" if rest else ""), file=sys.stderr)
        return 1
    try:
        for folder in profiles_in(os.path.realpath(chosen.output)):
            if chosen.export == "on":
                export(folder)
            if chosen.analyze == "on":
                analyze(folder)
    except (Unusable, OSError, KeyError, ValueError) as error:
        print(f"msprof: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
