"""Makes Python functions of the rows of _functions.py, which is generated from acl/data.

A function takes the C function's inputs by position and gives back its outputs, then its code:
`dev_ptr, ret = acl.rt.malloc(size, policy)`. Addresses, handles and numbers are ints. An argument of another
type raises TypeError and calls nothing; what the interface refuses comes back as a code. The interpreter's
lock is free while a function runs, so other threads go on.
"""

import ctypes
import operator
import os

from acl._functions import FUNCTIONS

_TYPES = {
    "address": ctypes.c_void_p,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "text": ctypes.c_char_p,
    "code": ctypes.c_int32,
    "nothing": None,
}
# Signed numbers outside of their type are errors of the caller's. Unsigned ones wrap around, as in C.
_LIMITS = {"i32": 1 << 31, "i64": 1 << 63}


def _load():
    """The library that the process has, or finds by its name; else the one that lies beside this package."""
    try:
        return ctypes.CDLL("libascendcl.so")
    except OSError:
        toolkit = os.path.realpath(__file__)
        for _ in range(4):  # python/site-packages/acl/_binding.py
            toolkit = os.path.dirname(toolkit)
        return ctypes.CDLL(os.path.join(toolkit, "lib64", "libascendcl.so"))


library = _load()

# A recorder in the process reads the caller's line while the interpreter's lock is held.
_tell_line = getattr(ctypes.PyDLL(None), "acltape_agent_python_line", None)


def tell_line():
    """Called at the start of each function, so that a recording has the line of its caller."""
    if _tell_line is not None:
        _tell_line()


def _number(where, kind, value):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{where} must be an int, not {type(value).__name__}") from None
    limit = _LIMITS.get(kind)
    if limit is not None and not -limit <= number < limit:
        raise OverflowError(f"{where} is {number}, which does not fit into {kind[1:]} bits")
    return number


def _float(where, _, value):
    try:
        return float(value) if not isinstance(value, str) else float(None)
    except TypeError:
        raise TypeError(f"{where} must be a float, not {type(value).__name__}") from None


def _text(where, _, value):
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{where} has a null character")
    return value.encode()


def _optional_text(where, kind, value):
    return None if value is None else _text(where, kind, value)


_CONVERTERS = {"f32": _float, "text": _text, "optional text": _optional_text}


def checked(where, kind, value):
    """The value of an argument as C takes it; `where` names it in errors."""
    return _CONVERTERS.get(kind, _number)(where, kind, value)


def _list(where, kind, value):
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{where} must be a list, not {type(value).__name__}")
    items = [checked(f"{where}[{place}]", kind, item) for place, item in enumerate(value)]
    return (_TYPES[kind] * len(items))(*items)


def _value(holder):
    """What comes back for an output, or for an input that comes back as it was."""
    if isinstance(holder, int):
        return holder
    value = holder.value
    if value is None:  # a null address
        return 0
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _c_type(use, kind):
    if use in ("out", "list", "buffer"):
        return ctypes.c_void_p
    return _TYPES["text" if kind == "optional text" else kind]


def _take(signature, wanted, required, arguments):
    """The arguments of a call by their words, checked."""
    if not required <= len(arguments) <= len(wanted):
        count = f"{required} to {len(wanted)}" if required != len(wanted) else str(required)
        raise TypeError(f"{signature} takes {count} argument{'s' * (count != '1')}, not {len(arguments)}")
    return {word: take(where, kind, value) for (take, where, kind, word), value in zip(wanted, arguments)}


def _hand(use, kind, word, other, values):
    """What the C function gets for one parameter; outputs are added to `values`."""
    if use == "in":
        return values.get(word)
    if use == "count":
        return len(values[other])
    if use == "null":
        values[word] = 0
        return None
    if use == "out":
        values[word] = _TYPES[kind]()
    elif use == "buffer":
        values[word] = ctypes.create_string_buffer(values[other] + 1)
    return ctypes.addressof(values[word])


def _bind(row):
    """The Python function of a row, or None where the library does not have the C function."""
    name, symbol, parameters, gives, result = row
    function = getattr(library, symbol, None)
    if function is None:
        return None
    function.argtypes = [_c_type(use, kind) for use, kind, _, _ in parameters]
    function.restype = _TYPES[result]
    inputs = [(use, kind, word) for use, kind, word, _ in parameters if use in ("in", "list")]
    required = sum(kind != "optional text" for _, kind, _ in inputs)
    signature = f"acl.{name}({', '.join(word for _, _, word in inputs)})"
    wanted = [(_list if use == "list" else _CONVERTERS.get(kind, _number), f"{word} of {signature}", kind, word)
              for use, kind, word in inputs]

    def call(*arguments):
        tell_line()
        values = _take(signature, wanted, required, arguments)
        answer = function(*[_hand(*parameter, values) for parameter in parameters])
        if answer is None and result == "address":
            answer = 0
        elif isinstance(answer, bytes):
            answer = answer.decode(errors="replace")
        return (*[_value(values[word]) for word in gives], answer) if gives else answer

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__module__ = "acl" if "." not in name else "acl." + name.rpartition(".")[0]
    returned = [*gives, *{"nothing": [], "code": ["ret"]}.get(result, ["value"])]
    call.__doc__ = (f"{', '.join(returned)} = " if returned else "") + f"{signature}: {symbol}"
    return call


def functions(module):
    """The functions of a module of the package by name; "" stands for acl itself."""
    prefix = module + "." if module else ""
    found = {}
    for row in FUNCTIONS:
        if row[0].rpartition(".")[0] != module:
            continue
        function = _bind(row)
        if function is not None:
            found[row[0][len(prefix):]] = function
    return found
