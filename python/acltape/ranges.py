"""Ranges and windows that a program marks itself. The recorder is looked for once, when the module is imported."""
import contextlib
import ctypes

_STEP = "acltape.step"
_process = ctypes.PyDLL(None)  # the lock is kept: a call takes less time than giving it back
_begin = getattr(_process, "acltape_agent_range_begin", None)
_end = getattr(_process, "acltape_agent_range_end", None)
_open = getattr(_process, "acltape_agent_window_open", None)
_close = getattr(_process, "acltape_agent_window_close", None)
if _begin is not None:
    _begin.argtypes, _begin.restype = [ctypes.c_char_p], None
    _end.argtypes, _end.restype = [], None


def recorded():
    """True when the process runs under `acltape record`."""
    return _begin is not None


@contextlib.contextmanager
def range(name):
    """A range of this thread: a context manager, or a decorator as `@acltape.range("name")`.

    Raises TypeError for a name that is no text, ValueError for one that holds a zero byte; recorded or
    not, so that a program behaves the same.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a range is a text, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError("the name of a range holds no zero byte")
    if _begin is None:
        yield
        return
    _begin(name.encode("utf-8", "backslashreplace"))
    try:
        yield
    finally:
        _end()


@contextlib.contextmanager
def window():
    """Records calls while it lasts, where the recording begins closed (`acltape record --start-closed`).

    It opens and closes the recording of the whole process tree; it is best opened where no other
    thread works. A context manager, or a decorator.
    """
    open_window()
    try:
        yield
    finally:
        close_window()


def open_window():
    """Begins to record calls, where the recording is closed."""
    if _open is not None:
        _open()


def close_window():
    """Records no more calls until the recording is opened again."""
    if _close is not None:
        _close()


def step():
    """One step of the program: what repeats, and what a captured graph could hold."""
    return range(_STEP)
