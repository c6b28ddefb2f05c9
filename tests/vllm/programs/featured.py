"""Generates with features of vLLM (features.py) and holds what comes out against their expectation."""
import features
import quantised
from engine import make_engine, timed
from models import engine_options, inputs_of_transformers, inputs_of_vllm, prompts_of, write_model


def prompts_for(options):
    return prompts_of(options.model, features.Chosen(options.feature).prompts())


def tokens_of_transformers(options, folder):
    """Writes the model and what its features need, and generates with it on the CPU."""
    chosen = features.Chosen(options.feature)
    prompts = prompts_for(options)
    model = write_model(options.model, options.dtype, folder, options.wrong_weight)
    models = chosen.models(model, folder, len(prompts))
    if options.wrong_scale:
        quantised.scale_wrongly(folder, options.wrong_scale)
    if chosen.tolerance(options.dtype) is not None:
        return features.save_references(models, folder)
    answers = []
    for place, (prompt, one) in enumerate(zip(prompts, models)):
        inputs = inputs_of_transformers(options.model, options.dtype, folder, place, prompt)
        made = one.generate(**inputs, do_sample=False, max_new_tokens=options.tokens, min_new_tokens=options.tokens,
                            pad_token_id=0, eos_token_id=None)
        answers.append(made[0, -options.tokens:].tolist())
    return answers


def answers_of_vllm(folder, options):
    """The answers to all prompts, for each round."""
    from vllm import SamplingParams
    chosen = features.Chosen(options.feature)
    engine = make_engine(folder, options, **engine_options(options.model), **chosen.engine(folder))
    sampling = SamplingParams(**{"temperature": 0, "max_tokens": options.tokens, "ignore_eos": True,
                                 "detokenize": False, **chosen.sampling()})
    prompts = inputs_of_vllm(options.model, prompts_for(options))
    adapters = None if options.without_adapter else chosen.adapters(folder, len(prompts))
    rounds = [timed(engine.generate, options.tokens * len(prompts), prompts, sampling, use_tqdm=False,
                    lora_request=adapters)
              for _ in range(chosen.rounds())]
    features.print_figures(engine, rounds)
    return rounds


def compare(options, folder, in_process):
    """The program's last line. `in_process` calls a function in a process of its own."""
    expected = in_process(tokens_of_transformers, options, folder)
    rounds = answers_of_vllm(folder, options)
    prompts = prompts_for(options)
    for prompt, answer in zip(prompts, rounds[-1]):
        print(f"{len(prompt)} tokens, then {list(answer.outputs[0].token_ids)}")
    return in_process(features.verdict, options, folder, prompts, expected, features.plain(rounds))
