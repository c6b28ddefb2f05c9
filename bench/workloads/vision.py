"""torchvision's models, for a PyTorch that its wheel was not built for too.

The wheel of a package index is built for CUDA. Beside a PyTorch for the CPU its own operators do not
load, and the import fails at the first one that it registers a fake for. Its models need none of them.
"""
import torch


def models():
    """torchvision.models; what hinders its import otherwise is raised."""
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", "() -> ()")
        import torchvision
    return torchvision.models
