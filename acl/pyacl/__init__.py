"""pyACL on the soft device: the ACL interface as Python functions.

The names and the order of what comes back are those of the vendor's package: outputs first, the code last.
docs/soft_device.md says what there is and what is left out.
"""

from acl import _binding

globals().update(_binding.functions(""))

from acl import mdl, rt, util  # noqa: E402,F401
