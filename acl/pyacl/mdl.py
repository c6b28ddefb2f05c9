"""Dumps of operators' tensors. pyACL has no functions for captured graphs."""

from acl import _binding

globals().update(_binding.functions("mdl"))
