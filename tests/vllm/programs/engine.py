"""The engine of vLLM that the programs of this folder generate with."""
import time


def make_engine(folder, options, **more):
    """An engine for the model in the folder, small enough for a laptop; `more` are options of vLLM."""
    from vllm import LLM
    graphs = {"cudagraph_mode": "NONE" if options.mode == "eager" else options.mode,
              "cudagraph_capture_sizes": [1, 2, 4]}
    begin = time.monotonic()
    engine = LLM(**{"model": folder, "skip_tokenizer_init": True, "dtype": options.dtype, "max_model_len": 256,
                    "gpu_memory_utilization": 0.02, "num_gpu_blocks_override": 32, "max_num_seqs": 4,
                    "enforce_eager": options.mode == "eager", "seed": 0, "compilation_config": graphs, **more})
    print(f"up after {time.monotonic() - begin:.1f} s", flush=True)
    return engine


def timed(function, count, *arguments, **options):
    """The result of the function, which generates so many tokens; prints how long that took."""
    begin = time.monotonic()
    result = function(*arguments, **options)
    print(f"generated {count} tokens in {time.monotonic() - begin:.2f} s", flush=True)
    return result
