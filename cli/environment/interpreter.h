// Finds the Python interpreter that a command line runs, and what is installed for it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace acltape::cli {

// The interpreter that the program will run under: `python3 prog.py`, `env A=1 python3 prog.py`,
// `/venv/bin/torchrun prog.py` (by its first line), `timeout 10 python3 prog.py`. Empty for any
// other program. The path is the one that was found, not what links lead to: a virtual environment
// is known by it.
std::filesystem::path NamedInterpreter(const std::vector<std::string>& command);
// Like NamedInterpreter, but gives python3 of PATH for any other program, which may start an
// interpreter itself. Empty when there is none.
std::filesystem::path FindInterpreter(const std::vector<std::string>& command);

// An interpreter that has torch: among the python3 and python of PATH with and without a version in
// their name, of $VIRTUAL_ENV, and of the folders .venv and venv here. Empty when there is none.
// Each is started, which takes some 20 ms.
std::filesystem::path InterpreterWithTorch();

// A name on PATH, or a path to an executable file; empty when it is neither.
std::filesystem::path FindExecutable(const std::string& word);

struct InstalledPackages {
  std::filesystem::path torch;                   // the package's folder; empty: not installed
  std::filesystem::path torch_npu;               // the adapter of NPUs
  std::vector<std::filesystem::path> wheels;     // packages with libraries over the adapter
  std::vector<std::filesystem::path> libraries;  // those that the interpreter itself has loaded
};

// Asks the interpreter; imports nothing. Throws Error when it does not run.
InstalledPackages AskInterpreter(const std::filesystem::path& interpreter);

}  // namespace acltape::cli
