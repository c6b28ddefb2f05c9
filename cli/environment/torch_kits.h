// Kits: the torch plug-in and the operator kernels, compiled for one libtorch (kit/place.h). One
// lies in acltape's own build, the others in the user's cache, where they are built when first
// needed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace acltape::cli {

// An installed PyTorch.
struct Torch {
  std::filesystem::path library;  // libtorch_cpu.so, links resolved
  std::filesystem::path include;  // holds torch/library.h
  std::string version;            // its headers say it; empty when there are none
  std::string identity;
};

// The PyTorch that `what` stands for: a Python interpreter (its path or a name on PATH), the folder
// of the package torch or one above it, or a libtorch_cpu.so. Error kUsage, with what was looked
// for, when there is none.
Torch FindTorch(const std::string& what);
// The PyTorch of an interpreter; nothing when it cannot import torch. Torch itself is not imported.
std::optional<Torch> TorchOf(const std::filesystem::path& interpreter);

struct Kit {
  std::filesystem::path folder;
  std::string identity;
  std::string torch_version;
  std::filesystem::path library;  // the libtorch_cpu.so that it was built with
  bool built_in = false;          // lies in acltape's own build
  bool current = true;            // made of the sources of this acltape
};

// Every kit that lies in acltape's build or in the cache.
std::vector<Kit> AllKits();
std::optional<Kit> FindKit(const std::string& identity);
// The value of ACLTAPE_KITS for recorded processes.
std::string KitPlaces();

struct BuildReport {
  Kit kit;
  double cpu_seconds = 0;  // time of the compiler, its children included
  double wall_seconds = 0;
};
// Compiles the kit into the cache, with a progress bar on a terminal. Two processes that want the
// same kit build it once: the second waits. Error kDevice, naming the log, when that is not
// possible.
BuildReport BuildKit(const Torch& torch);

// Builds the kit for the interpreter that these words start, when it is missing. For commands that
// run a program. Never fails: an obstacle is one sentence on stderr, and the program runs without
// the kit.
void PrepareKitFor(const std::vector<std::string>& command);
// Makes the kit of this libtorch the kit of this process. For commands that execute a trace. When
// there is none, one sentence says what differs: what a trace names is never built or executed.
void UseKit(const std::string& identity, const std::string& library);
// True once UseKit found none: operators of another libtorch execute the trace.
bool UsesOtherKit();

}  // namespace acltape::cli
