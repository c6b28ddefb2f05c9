// Writes a synthetic trace for programs that measure other tools.
//
//   synthetic_trace_file PATH CALLS [--acl]
#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#include "bench/synthetic_trace.h"

int main(int argc, char** argv) {
  const int64_t calls = argc > 2 ? std::atoll(argv[2]) : 0;
  const bool acl = argc == 4 && std::string_view(argv[3]) == "--acl";
  if (calls < 1 || argc > 4 || (argc == 4 && !acl)) {
    fmt::print(stderr, "usage: synthetic_trace_file PATH CALLS [--acl]\n");
    return 2;
  }
  try {
    const int64_t written = acl ? acltape::bench::WriteSyntheticServing(argv[1], calls, 1)
                                : acltape::bench::WriteSyntheticTraining(argv[1], {.calls = calls});
    fmt::print("{} calls\n", written);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
