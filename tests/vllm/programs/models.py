"""The families of models that offline.py runs: small, with random weights, as transformers makes them.

A family is a row of FAMILIES. `write_model` saves one to a folder, as a downloaded model lies there,
with a tokenizer and a processor of images where vLLM asks for them.
"""
import dataclasses

PROMPTS = [[1, 5, 9, 200, 33, 7, 80], [2, 11], [3, 4, 5, 6, 7, 8, 9, 10, 90, 91, 92, 93, 94]]

COMMON = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "tie_word_embeddings": False, "initializer_range": 0.08,
}
EXPERTS = {"moe_intermediate_size": 128, "num_experts_per_tok": 2}
# Attention over compressed keys: vLLM's plug-in takes ranks of 512 and rotary parts of 64 columns.
LATENT = {
    **EXPERTS, "num_key_value_heads": 4, "head_dim": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 64, "v_head_dim": 64, "n_routed_experts": 8, "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}


IMAGE = 500  # a token that stands for an image
MARKS = {"<|image_pad|>": IMAGE, "<|video_pad|>": 501, "<|vision_start|>": 502, "<|vision_end|>": 503}
SEEING = {
    "text_config": {**{key: value for key, value in COMMON.items() if key != "head_dim"},
                    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                        "mrope_section": [8, 12, 12]}},
    "image_token_id": IMAGE, "video_token_id": 501, "vision_start_token_id": 502,
    "vision_end_token_id": 503, "tie_word_embeddings": False,
}


@dataclasses.dataclass(frozen=True)
class Family:
    """Classes of transformers by name, what the configuration has beside COMMON, and what is compared."""
    config: str
    model: str
    overrides: dict = dataclasses.field(default_factory=dict)
    embeds: bool = False  # gives a vector for each prompt, no tokens
    sees: bool = False  # an image is before each prompt; the overrides are the whole configuration
    dtype: str = "float16"  # unless --dtype says another
    parts: bool = False  # its tokens part from those of transformers: log-probabilities are compared


FAMILIES = {
    "llama": Family("LlamaConfig", "LlamaForCausalLM"),
    "qwen2": Family("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": Family("Qwen3Config", "Qwen3ForCausalLM"),
    "qwen3-moe": Family("Qwen3MoeConfig", "Qwen3MoeForCausalLM", {
        **EXPERTS, "num_experts": 8, "norm_topk_prob": True}),
    "deepseek-v2": Family("DeepseekV2Config", "DeepseekV2ForCausalLM", {
        **LATENT, "q_lora_rank": None, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
        "routed_scaling_factor": 1.0, "norm_topk_prob": False}),
    "deepseek-v3": Family("DeepseekV3Config", "DeepseekV3ForCausalLM", {
        **LATENT, "q_lora_rank": 128, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
        "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.0, "norm_topk_prob": True}),
    "deepseek-v3-scaled": Family("DeepseekV3Config", "DeepseekV3ForCausalLM", {
        **LATENT, "q_lora_rank": 128, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
        "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "norm_topk_prob": True},
        dtype="bfloat16"),  # the plug-in is wrong in float16 (docs/vllm_ascend.md)
    "qwen3-next": Family("Qwen3NextConfig", "Qwen3NextForCausalLM", {
        **EXPERTS, "num_experts": 8, "norm_topk_prob": True, "num_hidden_layers": 4,
        "shared_expert_intermediate_size": 128, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "linear_key_head_dim": 64, "linear_value_head_dim": 64},
        parts=True),  # the plug-in computes chunks of the state's rule in bfloat16
    "qwen3-embedding": Family("Qwen3Config", "Qwen3ForCausalLM", embeds=True),
    "qwen2-vl": Family("Qwen2VLConfig", "Qwen2VLForConditionalGeneration", {
        **SEEING, "vision_config": {"depth": 2, "embed_dim": 128, "hidden_size": 256, "num_heads": 2}},
        sees=True),
}


def prompts_of(name, plain=None):
    """The ids of each prompt, or of these; one that has an image has one token for it."""
    return [[1, 502, IMAGE, 503, *prompt] if FAMILIES[name].sees else prompt for prompt in plain or PROMPTS]


def image_of(index):
    """The image of a prompt: other points and another size for each."""
    import numpy
    from PIL import Image
    points = numpy.random.default_rng(index).integers(0, 256, (56, 56 + 28 * index, 3), dtype=numpy.uint8)
    return Image.fromarray(points)


def inputs_of_vllm(name, prompts):
    """The prompts as vLLM takes them."""
    inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
    if FAMILIES[name].sees:
        for index, each in enumerate(inputs):
            each["multi_modal_data"] = {"image": image_of(index)}
    return inputs


def engine_options(name):
    """Options of vllm.LLM. A model that sees needs the tokenizer, which its processor asks."""
    return {"skip_tokenizer_init": not (FAMILIES[name].embeds or FAMILIES[name].sees)}


def inputs_of_transformers(name, dtype, folder, index, prompt, chosen=()):
    """The arguments of the model for the prompt at this place and the tokens that were chosen after it."""
    import torch
    if not FAMILIES[name].sees:
        ids = torch.tensor([prompt + list(chosen)])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    from transformers import AutoImageProcessor
    seen = AutoImageProcessor.from_pretrained(folder)(images=[image_of(index)], return_tensors="pt")
    count = int(seen["image_grid_thw"].prod()) // 4
    ids = [token for one in prompt for token in ([IMAGE] * count if one == IMAGE else [one])]
    ids = torch.tensor([ids + list(chosen)])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == IMAGE).int(), "image_grid_thw": seen["image_grid_thw"],
            "pixel_values": seen["pixel_values"].to(getattr(torch, dtype))}


def make_model(name, dtype):
    """A model of this family; the same weights in each call."""
    import torch
    import transformers
    family = FAMILIES[name]
    torch.manual_seed(0)
    more = {} if family.sees else COMMON
    config = getattr(transformers, family.config)(**{**more, **family.overrides})
    return getattr(transformers, family.model)(config).to(getattr(torch, dtype)).eval()


def write_processors(name, folder):
    """A tokenizer that has a word for each id, and for a model that sees what prepares its images."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers
    names = {number: name for name, number in MARKS.items()}
    words = {names.get(i, f"w{i}"): i for i in range(COMMON["vocab_size"])}
    inner = Tokenizer(models.WordLevel(words, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="w1", eos_token="w2", pad_token="w0", unk_token="w0",
        additional_special_tokens=list(MARKS))
    if not FAMILIES[name].sees:
        tokenizer.save_pretrained(folder)
        return
    transformers.Qwen2VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=28 * 28 * 64),
        tokenizer=tokenizer, video_processor=transformers.Qwen2VLVideoProcessor()).save_pretrained(folder)


def write_model(name, dtype, folder, wrong_weight=False):
    """Saves the model to the folder and gives it; what is saved may have a matrix that is twice too large."""
    model = make_model(name, dtype)
    matrix = next(value for key, value in model.named_parameters() if key.endswith("o_proj.weight"))
    if wrong_weight:
        matrix.data *= 2
    model.save_pretrained(folder)
    if FAMILIES[name].embeds or FAMILIES[name].sees:
        write_processors(name, folder)
    if wrong_weight:
        matrix.data /= 2
    return model
