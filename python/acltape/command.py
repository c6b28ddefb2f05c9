"""The command `acltape` of a wheel: it becomes the program that lies beside this module."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installed", "lib", "acltape",
                       "bin", "acltape")


def main():
    # Parts of the command that are written in Python run with the interpreter that has this package.
    os.environ.setdefault("ACLTAPE_PYTHON", sys.executable)
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
