"""Opens files of folders that may come from anywhere."""
import os
import stat


def open_plain(path):
    """A file opened for reading. Raises OSError for a link and for what is no plain file, such as a FIFO."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is no plain file")
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")
