"""The command acltape as a Python package: `acltape` on the path becomes the program that lies here."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installed", "lib", "acltape",
                       "bin", "acltape")


def main():
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
