// Writes a synthetic trace for programs that measure other tools.
//
//   synthetic_trace_file PATH CALLS [--acl]
//   synthetic_trace_file PATH --graphs GRAPHS CALLS EXECUTIONS [--both]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/synthetic_trace.h"

namespace {

using namespace acltape::bench;  // NOLINT(google-build-using-namespace): one small program

int64_t Write(const std::string& path, const std::vector<std::string_view>& words) {
  const auto number = [&](size_t word) {
    const int64_t value = word < words.size() ? std::atoll(words[word].data()) : 0;
    if (value < 1) {
      throw std::invalid_argument(
          "usage: synthetic_trace_file PATH CALLS [--acl]\n"
          "       synthetic_trace_file PATH --graphs GRAPHS CALLS EXECUTIONS [--both]");
    }
    return value;
  };
  if (!words.empty() && words[0] == "--graphs") {
    return WriteSyntheticGraphs(path, {.graphs = number(1),
                                       .calls = number(2),
                                       .executions = number(3),
                                       .both_levels = words.back() == "--both"});
  }
  const int64_t calls = number(0);
  return words.back() == "--acl" ? WriteSyntheticServing(path, calls, 1)
                                 : WriteSyntheticTraining(path, {.calls = calls});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    fmt::print("{} calls\n",
               Write(argc > 1 ? argv[1] : "", {argv + std::min(argc, 2), argv + argc}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
