"""Engines of vLLM that share prompts, each in a process of its own, as vLLM's data-parallel programs start them."""
import contextlib
import multiprocessing
import os
import queue
import socket
import time

from models import prompts_of


def share_out(function, count, folder, options):
    """Calls the function in each process with every count-th prompt, and puts the answers in order."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    ranks = [processes.Process(target=work, args=(function, rank, count, port, folder, options, answers))
             for rank in range(count)]
    for rank in ranks:
        rank.start()
    by_prompt = {}
    try:
        while len(by_prompt) < len(prompts_of(options.model)):
            failed = [rank.exitcode for rank in ranks if rank.exitcode]
            if failed:
                raise RuntimeError(f"an engine ended with exit code {failed[0]}")
            with contextlib.suppress(queue.Empty):
                by_prompt |= answers.get(timeout=1)
        for rank in ranks:
            rank.join()
    finally:
        for rank in ranks:
            rank.terminate()
    tokens, logarithms = zip(*(by_prompt[i] for i in sorted(by_prompt)))
    return list(tokens), None if logarithms[0] is None else list(logarithms)


def work(function, rank, count, port, folder, options, answers):
    os.environ |= {"VLLM_DP_RANK": str(rank), "VLLM_DP_RANK_LOCAL": str(rank), "VLLM_DP_SIZE": str(count),
                   "VLLM_DP_MASTER_IP": "127.0.0.1", "VLLM_DP_MASTER_PORT": str(port)}
    chosen = range(rank, len(prompts_of(options.model)), count)
    tokens, logarithms = function(folder, options, chosen)
    answers.put({i: (tokens[at], logarithms[at] if logarithms else None) for at, i in enumerate(chosen)})
    time.sleep(1)  # an engine that has no work takes part in the steps of the others until they all have none
