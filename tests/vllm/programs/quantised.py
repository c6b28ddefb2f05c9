"""Layers whose weights and inputs are integers of 8 bits: what vLLM reads, and the same in transformers.

`quantise` writes the weights as msmodelslim does, with the scale of a layer's input fixed (W8A8) or taken from each
token (W8A8_DYNAMIC). `quantise_reference` gives the layers of a model of transformers the same products: integers
times integers, then the scales. What is left between the two are roundings of the layers around.
"""
import json
import os

PRODUCTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RIGHT = "quantised.right"  # for the reference, and not among the files that vLLM reads
# The scale that is made wrong: the one that the scheme's product takes.
SCALES = {"W8A8": "input_scale", "W8A8_DYNAMIC": "weight_scale"}


def layers_of(model, names=PRODUCTS):
    """The matrix products of a model that have one of these names: their path and module."""
    return [(path, module) for path, module in model.named_modules() if path.split(".")[-1] in names]


def quantise(scheme):
    """Writes the layers' weights as integers, and the description that the plug-in reads."""
    def change(model, folder):
        import safetensors.torch
        tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        kinds = {name: "FLOAT" for name in tensors}
        inputs = largest_inputs(model) if scheme == "W8A8" else {}
        added = {}
        for path, module in layers_of(model):
            for name, tensor in of_layer(module, inputs.get(path)).items():
                added[f"{path}.{name}"] = tensor
                kinds[f"{path}.{name}"] = scheme
        safetensors.torch.save_file({**tensors, **added}, os.path.join(folder, "model.safetensors"), {"format": "pt"})
        safetensors.torch.save_file(added, os.path.join(folder, RIGHT))
        with open(os.path.join(folder, "quant_model_description.json"), "w", encoding="utf-8") as file:
            json.dump({"model_quant_type": scheme, **kinds}, file)
    return change


def of_layer(module, largest):
    """The tensors of a layer by name; `largest` is the largest input where its scale is fixed."""
    import torch
    weight, dtype = module.weight.detach().float(), module.weight.dtype
    scale = (weight.abs().amax(1, keepdim=True) / 127).to(dtype)
    made = {"weight": (weight / scale.float()).round().clamp(-127, 127).to(torch.int8), "weight_scale": scale,
            "weight_offset": torch.zeros_like(scale)}
    if largest is None:
        return made
    step = torch.tensor([largest / 127]).to(dtype)
    product = (step.float() * scale.float()).flatten()
    if dtype == torch.float16:
        product = product.view(torch.int32).to(torch.int64)  # the device takes the float's bits in 64
    return {**made, "input_scale": step, "input_offset": torch.zeros(1, dtype=dtype),
            "quant_bias": torch.zeros(scale.shape[0], dtype=torch.int32), "deq_scale": product}


def largest_inputs(model):
    """The largest absolute value that each layer takes in while it reads some prompts."""
    import torch
    largest = {}

    def note(path):
        def hook(_, arguments):
            largest[path] = max(largest.get(path, 0.0), float(arguments[0].abs().max()))
        return hook

    hooks = [module.register_forward_pre_hook(note(path)) for path, module in layers_of(model)]
    torch.manual_seed(3)
    with torch.no_grad():
        model(torch.randint(3, 500, (8, 64)))
    for hook in hooks:
        hook.remove()
    return largest


def scale_wrongly(folder, factor):
    """Multiplies one scale of one layer that vLLM reads."""
    import safetensors.torch
    path = os.path.join(folder, "model.safetensors")
    with open(os.path.join(folder, "quant_model_description.json"), encoding="utf-8") as file:
        scale = SCALES[json.load(file)["model_quant_type"]]
    tensors = safetensors.torch.load_file(path)
    name = next(name for name in sorted(tensors) if name.endswith(f"down_proj.{scale}"))
    tensors[name] = (tensors[name].float() * factor).to(tensors[name].dtype)
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def quantise_reference(model, folder):
    """Has the layers of a model compute with the integers and scales that were written for vLLM."""
    import safetensors.torch
    tensors = safetensors.torch.load_file(os.path.join(folder, RIGHT))
    for path, module in layers_of(model):
        module.forward = product_of(
            {name: tensors[f"{path}.{name}"] for name in
             ("weight", "weight_scale", "input_scale", "input_offset", "deq_scale") if f"{path}.{name}" in tensors},
            module.bias)


def product_of(layer, bias):
    """The product of a layer with its inputs. Sums of integers are exact in float64."""
    weight = layer["weight"].double().T
    if "input_scale" in layer:
        assert bias is None or not bias.any(), "the plug-in adds no bias to a layer with a fixed scale"
        factor = (1 / layer["input_scale"]).float()  # in the weights' dtype, as the plug-in has it
        offset, scale = layer["input_offset"].float(), as_device(layer["deq_scale"])

        def fixed(inputs):
            whole = (inputs.float() * factor + offset).round().clamp(-128, 127)
            return ((whole.double() @ weight).float() * scale).to(inputs.dtype)
        return fixed
    scale = layer["weight_scale"].flatten().float()

    def by_token(inputs):
        steps = inputs.float().abs().amax(-1, keepdim=True) / 127
        whole = (inputs.float() / steps.masked_fill(steps == 0, 1)).round().clamp(-128, 127)
        product = (whole.double() @ weight).float() * scale * steps
        return (product if bias is None else product + bias.float()).to(inputs.dtype)
    return by_token


def as_device(scale):
    """A scale as float32. Of the bits of a float that it has in 64 the device takes the upper 19."""
    import torch
    if scale.dtype != torch.int64:
        return scale.float()
    return (scale & 0xFFFFE000).to(torch.int32).view(torch.float32)
