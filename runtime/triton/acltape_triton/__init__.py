"""Triton kernels on the soft device: an interpreter of kernels over numpy, and their launch on a stream.

docs/soft_device.md, "Triton kernels", says what of the language there is. `hook` puts it in place.
"""
