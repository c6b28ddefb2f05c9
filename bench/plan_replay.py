#!/usr/bin/env python3
"""Plans the five workloads and replays each plan many times under jitter, compared bit for bit.

Per workload: record with every value, `acltape plan --spread`, then `acltape replay --plan` with repetitions split
over seeds of ACLTAPE_SOFT_JITTER, once with the outputs of every leaf and once with those of whole steps,
where buffers share memory. Then, without jitter, `acltape plan --calibrate` and `acltape compare --plan`:
latency per step eager, captured on one stream and by that plan, and how far its predictions were off.
Exit code 1 when a bit differs.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKLOADS = {
    "decoder": ["--tokens", "8", "--layers", "2"],
    "resnet18": ["--batches", "3", "--size", "64"],
    "googlenet": ["--batches", "3", "--size", "64"],
    "mlp_train": ["--steps", "5"],
    "bert_layer": ["--batches", "3", "--layers", "1"],
}


def acltape(binary, *words, seed=None, codes=(0,)):
    environment = dict(os.environ)
    if seed is not None:
        environment["ACLTAPE_SOFT_JITTER"] = str(seed)
    done = subprocess.run([binary, *words], env=environment, capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def replay(args, trace, plan, outputs):
    """Outputs compared and different over all repetitions; the report of the last seed."""
    compared = different = 0
    share = [args.repetitions // args.seeds + (s < args.repetitions % args.seeds)
             for s in range(args.seeds)]
    for seed, repetitions in enumerate(share, start=1):
        report = json.loads(acltape(args.binary, "replay", trace, "--plan", plan, "--outputs", outputs,
                                    "--repetitions", str(repetitions), "--format", "json", seed=seed,
                                    codes=(0, 1)))
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        compared += summary["outputs compared"]
        different += summary["outputs different"]
    return compared, different, report


def microseconds(times, execution):
    return next(row["median"] / 1e3 for row in times
                if row["quantity"] == "latency_per_step" and row["execution"] == execution)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("ACLTAPE_PYTHON", "python3"),
                        help="interpreter that imports torch")
    parser.add_argument("--repetitions", type=int, default=100, help="jittered replays of each plan")
    parser.add_argument("--seeds", type=int, default=10, help="jitter seeds that share them")
    parser.add_argument("--workloads", nargs="*", choices=sorted(WORKLOADS), default=list(WORKLOADS))
    args = parser.parse_args()
    args.binary = os.path.join(args.build, "bin", "acltape")
    args.seeds = max(1, min(args.seeds, args.repetitions))

    print(f"{'workload':>10} | {'streams':>7} | {'waits':>5} | {'compared':>8} | {'different':>9} | "
          f"{'of steps':>8} | {'different':>9} | {'eager':>9} | {'one stream':>10} | {'plan':>9} | "
          "error of prediction, %")
    worst = 0
    folder = tempfile.mkdtemp(prefix="acltape_plan_")
    for name in args.workloads:
        trace, plan = os.path.join(folder, name + ".db"), os.path.join(folder, name + ".json")
        acltape(args.binary, "record", "--quiet", "--payload", "all", "-o", trace, "--", args.python,
                os.path.join(ROOT, "bench", "workloads", name + ".py"), *WORKLOADS[name])
        acltape(args.binary, "plan", trace, "--spread", "-o", plan, codes=(0, 1))
        compared, different, report = replay(args, trace, plan, "leaf")
        of_steps, steps_different, _ = replay(args, trace, plan, "step")
        acltape(args.binary, "plan", trace, "-o", plan, "--calibrate", codes=(0, 1))
        times = json.loads(acltape(args.binary, "compare", trace, "--plan", plan, "--format", "json"))
        errors = " ".join(f"{row['latency_per_step_of']} {row['error']:+.0f}"
                          for row in times["predictions"])
        captured = [row for row in report["regions"] if row["kind"] == "captured"]
        print(f"{name:>10} | {max((row['streams'] for row in captured), default=0):7} | "
              f"{sum(row['waits'] for row in captured):5} | {compared:8} | {different:9} | "
              f"{of_steps:8} | {steps_different:9} | "
              f"{microseconds(times['times'], 'eager'):6.0f} us | "
              f"{microseconds(times['times'], 'captured'):7.0f} us | "
              f"{microseconds(times['times'], 'planned'):6.0f} us | {errors}", flush=True)
        worst = max(worst, different, steps_different)
    if worst:
        print(f"traces and plans that differ are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
