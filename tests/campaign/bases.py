"""The traces that the campaign makes mutants of: small recordings with values, at both levels, each with
a plan, with findings of lint, and where it can have one with the journal of a bisection.
"""
import collections
import hashlib
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "programs"))

Base = collections.namedtuple("Base", "name trace plan journal plant")

# Loops with what traces have: views, in-place writes, lists, random numbers, a host read, ranges.
PROGRAM = '''
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    with torch.autograd.profiler.record_function("step"):
        x = torch.randn(5, 6)
        y = torch.cat([x[:, :3], x[:, 3:].flip(0)], 1)
        loss = (model(y).t().reshape(5, 3) ** 2).mean() + torch.empty(0, 4).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
'''


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **options)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(words)}\nexit code {done.returncode}\n"
                           f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def torch_python():
    for candidate in (os.environ.get("ACLTAPE_PYTHON"), "python3", "/usr/bin/python3"):
        if candidate and subprocess.run([candidate, "-c", "import torch"], capture_output=True).returncode == 0:
            return candidate
    return None


def programs(folder):
    """Name and command of each program that is recorded."""
    python = torch_python()
    if python:
        path = os.path.join(folder, "train.py")
        with open(path, "w") as file:
            file.write(PROGRAM)
        yield "train", [python, path], ("--steps-from", "step", "--modules")
    import acl_programs
    for name, source, options in (("mixed_work", "mixed_work.cpp", ()), ("task_update", "task_update.cpp", ()),
                                  ("fork_join", "capture_fork_join.cpp", ())):
        binary = os.path.join(folder, name + ".bin")
        run(*acl_programs.build_line(source, binary))
        yield name, [binary, *options], ()


def record(recorder, folder, name, command, options):
    import acl_programs
    trace = os.path.join(folder, name + ".db")
    environment = dict(os.environ, LD_LIBRARY_PATH=acl_programs.LIBRARIES)
    run(recorder, "record", "--force", "-o", trace, "--payload", "all", *options, "--", *command, env=environment)
    return trace


def complete(recorder, trace):
    """Adds what tools leave in a trace, and makes its plan and its journal."""
    stem = trace[:-3]
    run(recorder, "lint", trace)
    run(recorder, "plan", trace, "-o", stem + ".plan.json")
    run(recorder, "replay", trace, "--mode", "captured")


def make_journal(binary, trace):
    """The journal of a bisection of a planted fault, and the fault; it names the device of `binary`, so that
    each build has its own. Nothing where no fault can be planted."""
    build = hashlib.sha256(os.path.abspath(binary).encode()).hexdigest()[:8]
    journal = f"{trace[:-3]}.{build}.journal"
    note = journal + ".plant"
    if not os.path.exists(note):
        listed = run(binary, "query", trace, "SELECT call_id FROM call "
                     "WHERE op IN ('aten::addmm', 'aten::relu', 'aclnnAdd') "
                     "AND leaf = 1 ORDER BY 1 DESC LIMIT 8", "--format", "csv").stdout.split()[1:]
        planted = ""
        for call in listed:
            done = subprocess.run([binary, "bisect", trace, "--plant", f"wrong_bits@{call}", "--journal", journal,
                                   "--restart",
                                   "--budget", "60s"], capture_output=True, text=True, timeout=300)
            if not os.path.exists(journal):
                raise SystemExit(f"no journal of a bisection of {trace} can be made with {binary}:\n{done.stderr}")
            with open(journal) as file:
                if len(file.readlines()) > 1:
                    planted = f"wrong_bits@{call}"
                    break
        with open(note, "w") as file:
            file.write(planted)
    with open(note) as file:
        planted = file.read()
    return (journal, planted) if planted else (None, "wrong_bits@1")


def make(folder, recorder, binary):
    """The bases of a folder; records them where it has none. The journals are those of `binary`."""
    os.makedirs(folder, exist_ok=True)
    listing = os.path.join(folder, "bases")
    if not os.path.exists(listing):
        names = []
        for name, command, options in programs(folder):
            trace = record(recorder, folder, name, command, options)
            complete(recorder, trace)
            names.append(name)
        with open(listing, "w") as file:
            file.write("\n".join(names) + "\n")
    with open(listing) as file:
        names = re.findall(r"\S+", file.read())
    bases = []
    for name in names:
        trace = os.path.join(folder, name + ".db")
        bases.append(Base(name, trace, trace[:-3] + ".plan.json", *make_journal(binary, trace)))
    return bases
