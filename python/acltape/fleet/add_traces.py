"""Adds traces to a folder of fleet tables: `acltape fleet add DIR TRACE...` runs this (docs/fleets.md).

    python3 -m acltape.fleet.add_traces DIR TRACE... [--name RUN] [--rank N] [--label TEXT] [--force]

Prints lines of JSON: {"progress": [MiB of traces that are done, all of them]}, {"row": a part that was added} and
{"failed": {"trace", "why", "code"}}. Exit code 2: the command line or the folder; 3: a trace; 4: a package is missing,
or the disk is full. The last line on stderr is the sentence.
"""
import argparse
import datetime
import hashlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time

from acltape import frames
from acltape.fleet import parts
from acltape.fleet.columns import Columns, Failure
from acltape.fleet.parts import DEVICE, TRACE, USAGE, Part
from acltape.fleet.write_trace import program_of, write_tables

# Traces are written side by side by so many processes.
PROCESSES = 2
_MIB = 1 << 20
# Tables whose rows are counted for the progress.
_LARGE = ("call_row", "call_extra", "buffer_row", "snapshot", "device_span")


# As `acltape record --per-rank` names its files: t.rank3.db.
_RANK_OF_FILE = re.compile(r"\.rank(\d{1,9})$")


def run_of(trace):
    """The name of a run that a trace has when none is given: that of its file, without ".rank3"."""
    name = os.path.basename(trace)
    name = re.sub(r"\.db$", "", name)
    name = _RANK_OF_FILE.sub("", name)
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or "run"


def _time_text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Source:
    """A trace file: what it is, and whether it is still the same at the end."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self._state = self._look()
        self.bytes = self._state[0]
        digest = hashlib.sha256()
        with open(self.path, "rb") as file:
            for piece in iter(lambda: file.read(_MIB), b""):
                digest.update(piece)
        self.digest = "sha256:" + digest.hexdigest()

    def _look(self):
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns, status.st_ino

    def judge_unchanged(self):
        if self._look() != self._state:
            raise Failure(TRACE, f"'{self.path}' was changed while it was read; add it when nobody writes to it")


def _ranks(trace, facts, given):
    """The ranks of a trace; the rank that is told of a trace without one; a sentence where it had to be guessed."""
    ranks = [entry["rank"] for entry in facts["ranks"] if entry["rank"] >= 0]
    if len(ranks) > 1:
        if given is not None:
            raise Failure(USAGE, f"'{trace.path}' holds {len(ranks)} ranks, which --rank cannot name; leave it out")
        return ranks, None
    if given is not None:
        return [given], None
    told = facts["meta"].get("rank", "")
    if told.isdigit() or ranks:
        return [int(told) if told.isdigit() else ranks[0]], None
    of_file = _RANK_OF_FILE.search(re.sub(r"\.db$", "", trace.path))
    if of_file:
        return [int(of_file.group(1))], "the trace does not say its rank, which is that of the name of its file"
    return [0], "the trace does not say its rank; it was added as rank 0"


def _manifest(trace, facts, source, options, told, read_ahead, part, note):
    tables, lacks = write_tables(trace, part, facts, told, read_ahead)
    source.judge_unchanged()
    meta = facts["meta"]
    begin = meta.get("begin_wall_ns", "")
    return {
        "trace": {"path": source.path, "bytes": source.bytes, "digest": source.digest},
        "acltape_version": meta.get("acltape_version"), "schema_version": facts["schema_version"],
        "recorded": _time_text(int(begin) // 10**9) if begin.isdigit() and len(begin) < 21 else None,
        "exported": _time_text(time.time()), "host": meta.get("host"), "program": program_of(meta),
        "world_size": facts["world_size"], "label": options["label"], "tables": tables,
        "lacks": ([note] if note else []) + lacks,
    }


def _row(part, manifest):
    files = [file for table in manifest["tables"].values() for file in table["files"]]
    return {"run": part.run, "rank": part.rank, "calls": manifest["tables"]["call_row"]["rows"],
            "rows": sum(file["rows"] for file in files), "files": len(files),
            "bytes": sum(file["bytes"] for file in files), "lacks": len(manifest["lacks"]),
            "trace": manifest["trace"]["path"]}


def add_trace(folder, path, options, told=lambda share: None, read_ahead=False):
    """Adds each rank of a trace as a part, and yields what was added. told(share of the trace that is done)."""
    with Columns(path) as trace:
        facts = trace.facts()
        if facts["state"] == "recording":
            raise Failure(TRACE, f"'{path}' is still being recorded; add it when the recording has ended")
        source = _Source(path)
        ranks, note = _ranks(trace, facts, options["rank"])
        run = parts.judge_run(options["run"] or run_of(path))
        if not options["force"]:
            for rank in ranks:
                parts.judge_absent(folder, run, rank)
        all_rows = sum(trace.values(f'SELECT count(*) FROM "{table}"', table, ["BIGINT"])[0][0]
                       for table in _LARGE if table in facts["tables"])
        done = 0

        def count(rows):
            nonlocal done
            done += rows
            told(min(done / max(all_rows, 1), 1.0))

        for rank in ranks:
            with Part(folder, run, rank, options["force"]) as part:
                if len(ranks) == 1:
                    manifest = _manifest(trace, facts, source, options, count, read_ahead, part, note)
                else:
                    trace.split(rank, part.scratch())
                    with Columns(part.scratch()) as alone:
                        of_one = alone.facts()
                        of_one["world_size"] = of_one["world_size"] or len(ranks)
                        of_one["schema_version"] = facts["schema_version"]
                        manifest = _manifest(alone, of_one, source, options, count, read_ahead, part, note)
                part.commit(manifest)
            yield _row(part, manifest)


def _failure(error, path, folder):
    """What happened, as a Failure; an error of the program itself is raised again."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, frames.Missing):
        return Failure(DEVICE, str(error))
    if isinstance(error, OSError):
        return parts.sentence_of(error, folder)
    if isinstance(error, MemoryError):
        return Failure(DEVICE, f"out of memory while '{path}' was added")
    raise error


# Requests to a process that adds traces, and its answers, are lines of JSON.
def work():
    """What such a process does: adds the traces that it is told on stdin."""
    for line in sys.stdin:
        request = json.loads(line)
        next_told = 0.0

        def told(share):
            nonlocal next_told
            if time.monotonic() >= next_told:
                next_told = time.monotonic() + 0.2
                print(json.dumps({"share": share}), flush=True)

        try:
            for row in add_trace(request["folder"], request["trace"], request["options"], told):
                print(json.dumps({"row": row}), flush=True)
        except Exception as error:
            failure = _failure(error, request["trace"], request["folder"])
            print(json.dumps({"failed": {"trace": request["trace"], "why": str(failure), "code": failure.code}}),
                  flush=True)
        print(json.dumps({"done": True}), flush=True)


_WORK = "import sys; sys.path[:] = eval(sys.argv[1]); from acltape.fleet.add_traces import work; work()"


class _Worker:
    """A process that adds one trace after the other. It is started anew when it was killed."""

    def __init__(self, folder, options):
        self._folder, self._options, self._process = folder, options, None

    def add(self, trace, told):
        """Yields {"row": ...} and {"failed": ...}."""
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, "-B", "-c", _WORK, repr(sys.path)], text=True,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self._process.stdin.write(json.dumps({"folder": self._folder, "trace": trace, "options": self._options})
                                      + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self._process.stdout:
            answer = json.loads(line)
            if "done" in answer:
                return
            if "share" in answer:
                told(answer["share"])
            else:
                yield answer
        code = self.end()
        parts.remove_leftovers(self._folder)
        ended = f"by signal {-code}" if code < 0 else f"with code {code}"
        yield {"failed": {"trace": trace, "why": f"the process that added '{trace}' ended {ended}", "code": DEVICE}}

    def end(self):
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdout.close()
        return process.wait()


def _side_by_side(folder, traces, options, told):
    """Answers for all traces, as the processes give them."""
    waiting, answers = queue.SimpleQueue(), queue.SimpleQueue()
    for trace in traces:
        waiting.put(trace)

    def serve():
        worker = _Worker(folder, options)
        try:
            while True:
                trace = waiting.get_nowait()
                for answer in worker.add(trace, lambda share, of=trace: answers.put(("share", (of, share)))):
                    answers.put(("answer", answer))
                answers.put(("share", (trace, 1.0)))
        except queue.Empty:
            pass
        except BaseException as error:
            answers.put(("error", error))
        finally:
            worker.end()
            answers.put(("end", None))

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(PROCESSES, len(traces)))]
    for thread in threads:
        thread.start()
    living = len(threads)
    while living:
        kind, value = answers.get()
        if kind == "answer":
            yield value
        elif kind == "share":
            told(*value)
        elif kind == "error":
            raise value
        else:
            living -= 1


def answers(folder, traces, run=None, rank=None, label=None, force=False, progress=lambda done, all_of_it: None):
    """Adds traces as `add` does. Yields {"row": {...}} for each part that was added, and {"failed": {"trace", "why",
    "code"}} for each trace that was not. Raises Failure when nothing can be added.
    """
    frames.package("pyarrow.parquet")
    traces = [os.fspath(trace) for trace in traces]
    if rank is not None and len(traces) > 1:
        raise Failure(USAGE, f"--rank names the rank of one trace, and there are {len(traces)}; leave it out, or add "
                             "them one by one")
    options = {"run": None if run is None else parts.judge_run(run), "rank": rank, "label": label, "force": force}
    if not any(map(os.path.exists, traces)):  # such as a pattern that fits nothing: no folder is made
        others = f", nor one of the other {len(traces) - 1}" if len(traces) > 1 else ""
        raise Failure(TRACE, f"there is no trace '{traces[0]}'{others}")
    folder = parts.open_folder(folder)
    parts.remove_leftovers(folder)
    sizes = {trace: os.path.getsize(trace) / _MIB if os.path.exists(trace) else 0 for trace in traces}
    shares = dict.fromkeys(traces, 0.0)

    def told(trace, share):
        shares[trace] = share
        progress(int(sum(sizes[one] * shares[one] for one in sizes)), int(sum(sizes.values())))

    if len(traces) > 1:
        yield from _side_by_side(folder, traces, options, told)
        return
    for trace in traces:
        try:
            for row in add_trace(folder, trace, options, lambda share, of=trace: told(of, share), read_ahead=True):
                yield {"row": row}
        except Exception as error:
            failure = _failure(error, trace, folder)
            yield {"failed": {"trace": trace, "why": str(failure), "code": failure.code}}


def _failure_of(failed, count):
    others = f"; {len(failed)} of {count} traces were not added" if count > 1 else ""
    return Failure(failed[0]["code"], failed[0]["why"] + others)


def add(folder, traces, run=None, rank=None, label=None, force=False):
    """Adds traces to a folder of fleet tables, which is made where there is none. A dictionary for each part.

    run, rank: what the traces are called, else as they say themselves, or their files. label: a word by which
    questions group parts, such as a role or a branch. force: replace parts that are there. Raises Failure when a trace
    could not be added, once all the others are.
    """
    told = list(answers(folder, traces, run, rank, label, force))
    failed = [answer["failed"] for answer in told if "failed" in answer]
    if failed:
        raise _failure_of(failed, len(traces))
    return [answer["row"] for answer in told]


def main():
    parser = argparse.ArgumentParser(prog="acltape fleet add")
    parser.add_argument("folder")
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--name", dest="run")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--label")
    parser.add_argument("--force", action="store_true")
    given = parser.parse_args()
    failures = []

    def progress(done, all_of_it):
        print(json.dumps({"progress": [done, all_of_it]}), flush=True)

    try:
        for answer in answers(given.folder, given.traces, given.run, given.rank, given.label, given.force, progress):
            print(json.dumps(answer), flush=True)
            if "failed" in answer:
                failures.append(answer["failed"])
    except Exception as error:
        failure = _failure(error, given.traces[0], given.folder)
        print(str(failure), file=sys.stderr)
        return failure.code
    if failures:
        failure = _failure_of(failures, len(given.traces))
        print(str(failure), file=sys.stderr)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
