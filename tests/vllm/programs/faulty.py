#!/usr/bin/env python3
"""Generates tokens with vLLM as offline.py does, with a fault planted in its model or its runner.

Prints the tokens of each prompt. With --right the same program runs without the fault: what the fault
is planted in is as its authors wrote it, or does the same work rightly. No installed file is changed;
planted.py replaces functions in this process.
"""
import argparse
import os
import tempfile

import offline
import planted

# Two prompts end a few tokens before their second blocks of the cache begin.
PROMPTS = [[3 + 7 * index % 500 for index in range(124)], [5 + 11 * index % 500 for index in range(125)],
           [3, 4, 5, 6, 7, 8, 9, 10, 90, 91, 92, 93, 94]]


def engine_of(folder, mode, more):
    from vllm import LLM
    graphs = {"cudagraph_mode": "NONE" if mode == "eager" else mode, "cudagraph_capture_sizes": [1, 2, 4]}
    return LLM(model=folder, skip_tokenizer_init=True, dtype="float16", max_model_len=256,
               gpu_memory_utilization=0.02, num_gpu_blocks_override=32, max_num_seqs=4,
               enforce_eager=mode == "eager", seed=0, compilation_config=graphs, **more)


def generate(engine, count):
    from vllm import SamplingParams
    sampling = SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
    answers = engine.generate([{"prompt_token_ids": prompt} for prompt in PROMPTS], sampling, use_tqdm=False)
    for prompt, answer in zip(PROMPTS, answers):
        print(f"{len(prompt)} tokens, then {list(answer.outputs[0].token_ids)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--fault", choices=list(planted.FAULTS), required=True)
    parser.add_argument("--right", action="store_true", help="runs the program without the fault")
    parser.add_argument("--mode", choices=offline.MODES, help="default: that in which the fault shows")
    parser.add_argument("--tokens", type=int, default=10)
    options = parser.parse_args()
    fault = planted.FAULTS[options.fault]
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with tempfile.TemporaryDirectory(prefix="vllm_model_") as folder:
        offline.write_model("llama", "float16", folder)
        planted.keep_runner()
        fault.plant(options.right)
        engine = engine_of(folder, options.mode or fault.mode, fault.engine or {})
        for number in range(fault.rounds):
            if number:
                fault.between(options.right)
            generate(engine, options.tokens)
        fault.after(options.right)


if __name__ == "__main__":
    main()
