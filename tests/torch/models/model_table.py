"""25 small models of the package transformers, of twelve families, with random weights.

A row says how the model is configured, what it is given, and whether it generates. A program builds
one with `build(name)`; everything random comes from the seed that it sets before.
"""
from dataclasses import dataclass

VOCABULARY = 96
LENGTH = 12
BATCH = 2


@dataclass(frozen=True)
class Row:
    family: str
    model: str  # the class of transformers
    config: str  # the class of its configuration
    inputs: str  # a row of INPUTS
    settings: dict
    attention: str = "sdpa"  # "eager" where the model has nothing else, or to try that too
    generates: bool = False
    # Leaves that no operator of the device computes with these bits; a replay takes their results
    # from the recording (docs/limits.md, "Operators without a lowering").
    substituted: tuple = ()


# Settings that the configurations of most language models have under these names.
TEXT = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
        "pad_token_id": 0}
GROUPED = {**TEXT, "num_key_value_heads": 2}
EXPERTS = {**GROUPED, "num_experts_per_tok": 2}
IMAGE = {"image_size": 32, "num_labels": 5}
VIT = {**IMAGE, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 48}
ENCODER_DECODER = {"vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                   "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
                   "decoder_ffn_dim": 48, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
                   "pad_token_id": 0, "decoder_start_token_id": 3}
SOUND = {**TEXT, "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 2],
         "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
         "apply_spec_augment": False}  # masks differ between steps

MODELS = {
    # Decoders of the Llama kind: rotary positions, RMS norm, gated layers.
    "llama": Row("llama", "LlamaForCausalLM", "LlamaConfig", "text", GROUPED, generates=True),
    "qwen3": Row("llama", "Qwen3ForCausalLM", "Qwen3Config", "text", {**GROUPED, "head_dim": 8}, generates=True),
    "gemma": Row("llama", "GemmaForCausalLM", "GemmaConfig", "text", {**GROUPED, "head_dim": 8}, "eager",
                 generates=True),
    # Decoders of the GPT kind: layer norm and plain layers.
    "gpt2": Row("gpt", "GPT2LMHeadModel", "GPT2Config", "text",
                {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                 "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}, generates=True),
    "gpt_neox": Row("gpt", "GPTNeoXForCausalLM", "GPTNeoXConfig", "text", TEXT, generates=True),
    "opt": Row("gpt", "OPTForCausalLM", "OPTConfig", "text",
               {**TEXT, "ffn_dim": 48, "word_embed_proj_dim": 32}, generates=True),
    "phi": Row("gpt", "PhiForCausalLM", "PhiConfig", "text", TEXT, "eager", generates=True),
    "falcon": Row("gpt", "FalconForCausalLM", "FalconConfig", "text", {**TEXT, "alibi": False}, generates=True),
    # Mixtures of experts.
    "mixtral": Row("experts", "MixtralForCausalLM", "MixtralConfig", "text",
                   {**EXPERTS, "num_local_experts": 4}, generates=True),
    "qwen3_moe": Row("experts", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", "text",
                     {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 16, "head_dim": 8}, generates=True),
    # State spaces.
    "mamba": Row("state space", "MambaForCausalLM", "MambaConfig", "text",
                 {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8,
                  "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}, "eager", generates=True),
    # Encoders and decoders of text.
    "t5": Row("text to text", "T5ForConditionalGeneration", "T5Config", "text",
              {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
               "decoder_start_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}, "eager", generates=True),
    "bart": Row("text to text", "BartForConditionalGeneration", "BartConfig", "text", ENCODER_DECODER,
                generates=True),
    # Encoders.
    "bert": Row("encoder", "BertForMaskedLM", "BertConfig", "text", TEXT),
    "roberta": Row("encoder", "RobertaForMaskedLM", "RobertaConfig", "text", TEXT, "eager"),
    "distilbert": Row("encoder", "DistilBertForMaskedLM", "DistilBertConfig", "text",
                      {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
                       "max_position_embeddings": 64}),
    "deberta": Row("disentangled encoder", "DebertaV2ForMaskedLM", "DebertaV2Config", "text",
                   {**TEXT, "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm",
                    "share_att_key": True, "pos_att_type": ["p2c", "c2p"]}, "eager"),
    # Images.
    "vit": Row("patches", "ViTForImageClassification", "ViTConfig", "image", VIT),
    "deit": Row("patches", "DeiTForImageClassification", "DeiTConfig", "image", VIT, "eager"),
    "swin": Row("windows", "SwinForImageClassification", "SwinConfig", "image",
                {**IMAGE, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4],
                 "window_size": 4}),
    "convnext": Row("convolution", "ConvNextForImageClassification", "ConvNextConfig", "image",
                    {**IMAGE, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}, "eager"),
    # Images and text.
    "clip": Row("image and text", "CLIPModel", "CLIPConfig", "image and text",
                {"projection_dim": 16, "text_config": {**TEXT, "projection_dim": 16},
                 "vision_config": {**VIT, "projection_dim": 16}}),
    # Speech.
    "whisper": Row("speech", "WhisperForConditionalGeneration", "WhisperConfig", "spectrum",
                   {**ENCODER_DECODER, "num_mel_bins": 16, "max_source_positions": 24, "max_target_positions": 32,
                    "suppress_tokens": [], "begin_suppress_tokens": []}, generates=True),
    "hubert": Row("speech", "HubertForCTC", "HubertConfig", "sound", {**SOUND, "conv_pos_batch_norm": True}),
    "wav2vec2": Row("speech", "Wav2Vec2ForCTC", "Wav2Vec2Config", "sound", SOUND, "eager", substituted=(
        "aten::_weight_norm_interface", "aten::_weight_norm_interface_backward")),
}



def text(torch):
    tokens = torch.randint(4, VOCABULARY, (BATCH, LENGTH))
    attended = torch.ones_like(tokens)
    attended[0, :3] = 0  # padded on the left, as a batch of generate is
    return {"input_ids": tokens, "attention_mask": attended}, {"labels": tokens}


def image(torch):
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32)}, {"labels": torch.randint(0, 5, (BATCH,))}


def image_and_text(torch):
    tokens = text(torch)[0]
    tokens["input_ids"][:, -1] = 2
    return {**tokens, "pixel_values": torch.randn(BATCH, 3, 32, 32)}, {"return_loss": True}


def spectrum(torch):
    return ({"input_features": torch.randn(BATCH, 16, 48)},
            {"labels": torch.randint(4, VOCABULARY, (BATCH, LENGTH))})


def sound(torch):
    return {"input_values": torch.randn(BATCH, 1000)}, {"labels": torch.randint(4, VOCABULARY, (BATCH, 5))}


# Functions that make the inputs of a model, and those that its training adds.
INPUTS = {"text": text, "image": image, "image and text": image_and_text, "spectrum": spectrum, "sound": sound}


def without_chance(config):
    """Nothing is dropped: devices draw different random numbers, and steps would differ."""
    for name, value in vars(config).items():
        if hasattr(value, "to_dict"):
            without_chance(value)
        elif "drop" in name and isinstance(value, float):
            setattr(config, name, 0.0)


def build(name):
    """The model on the CPU, its inputs and what training adds to them. Call torch.manual_seed before."""
    import torch
    import transformers
    row = MODELS[name]
    config = getattr(transformers, row.config)(**row.settings)
    without_chance(config)
    config._attn_implementation = row.attention
    model = getattr(transformers, row.model)(config)
    inputs, labels = INPUTS[row.inputs](torch)
    return model, inputs, labels
