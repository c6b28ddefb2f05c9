"""Puts the interpreter where a program launches Triton kernels. No installed file is changed.

torch calls `autoload` at the end of its import (its entry points of the group torch.backends). From then on these
modules are changed in memory when the program imports them:

- vllm.triton_utils.importing: vLLM's placeholder, which stands for Triton where there is none, or none that
  has a driver. Its `jit` gives back the function as it is, which cannot be launched.
- vllm_ascend.ops.triton.triton_utils: without Triton the plug-in does not ask how many cores the device has,
  by which its kernels divide their work.
- triton.runtime.jit: an installed Triton, which would compile for a device that is not there.
"""

import importlib.machinery
import sys


def _fill_placeholder(module):
    """vLLM's placeholder gets decorators whose kernels can be launched. HAS_TRITON stays as it is."""
    placeholder = getattr(module, "TritonPlaceholder", None)
    if placeholder is None:
        return
    # A compiled model that vLLM kept on the disk names the operator of `compiled`.
    from acltape_triton import compiled, kernel  # noqa: F401  pylint: disable=unused-import
    make = placeholder.__init__

    def filled(self, *arguments, **named):
        make(self, *arguments, **named)
        for name, value in kernel.EXPORTED.items():
            setattr(self, name, value)

    placeholder.__init__ = filled


def _count_cores(module):
    """The plug-in's kernels learn the number of cores from the device, and get the functions of blocks."""
    if getattr(module, "HAS_TRITON", True):
        return
    from acltape_triton import language

    def ask_device():
        import torch
        properties = torch.npu.get_device_properties(torch.npu.current_device())
        module._NUM_AICORE = properties.cube_core_num
        module._NUM_VECTORCORE = properties.vector_core_num

    module.init_device_properties_triton = ask_device
    for name in ("insert_slice", "extract_slice", "get_element"):
        setattr(module, name, getattr(language, name))


def _interpret_installed(module):
    """Kernels of an installed Triton are interpreted when they are launched."""
    from acltape_triton import kernel

    def run(self, *arguments, grid, warmup=False, **named):
        return kernel.Kernel.of(self.fn).run(*arguments, grid=grid, warmup=warmup, **named)

    module.JITFunction.run = run


def _take_first_configuration(module):
    """Autotuning would measure; it takes the first configuration."""
    def run(self, *arguments, grid, **named):
        known = {**dict(zip(self.arg_names, arguments)), **named}
        added = {name: value for name, value in self.configs[0].all_kwargs().items()
                 if name not in known and name in self.arg_names}
        return self.fn.run(*arguments, grid=grid, **named, **added)

    module.Autotuner.run = run


CHANGES = {
    "vllm.triton_utils.importing": _fill_placeholder,
    "vllm_ascend.ops.triton.triton_utils": _count_cores,
    "triton.runtime.jit": _interpret_installed,
    "triton.runtime.autotuner": _take_first_configuration,
}


class _Finder:
    """Finds the modules of the table as Python does, and has them changed after they are loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        change = CHANGES.get(name)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            change(module)

        spec.loader.exec_module = load_and_change
        return spec


def autoload():
    """Called by torch when it has been imported."""
    if _Finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _Finder)
    for name, change in CHANGES.items():
        if name in sys.modules:
            change(sys.modules[name])
