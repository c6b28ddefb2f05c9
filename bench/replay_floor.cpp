// Captured replay of one recorded step against its floor: a bare loop that calls the same kernels
// with the same buffers, without streams, queues, models or threads in between.
//
//   replay_floor TRACE [rounds]
//
// The middle step of the trace is bound to device memory and captured through the ACL interface as
// a replay does it. While it is captured, the kernels that the operator library hands to the device
// are noted; the bare loop calls exactly those. Both run in turn (A B A B); one captured execution
// is aclmdlRIExecuteAsync and aclrtSynchronizeStream. Prints medians and the median of the ratios.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "analyzer/program/program.h"
#include "analyzer/steps/steps.h"
#include "base/median.h"
#include "replayer/device/device.h"
#include "replayer/engine/eager.h"
#include "replayer/engine/execution.h"
#include "replayer/engine/lowered_program.h"
#include "replayer/values/contents.h"
#include "runtime/prepared_launch.h"
#include "storage/reader.h"

namespace {

struct NotedKernel {
  SoftKernelRun run;
  void* bound;
};
bool g_noting = false;
std::vector<NotedKernel> g_kernels;
decltype(&SoftLaunchPreparedKernel) g_device_launch = nullptr;

}  // namespace

// The operator library finds this definition before the device's own, because an executable's
// symbols come first.
extern "C" __attribute__((visibility("default"))) aclError SoftLaunchPreparedKernel(
    aclrtStream stream, const char* name, uint32_t prepared_by, SoftKernelRun run,
    SoftKernelDrop drop, void* bound) {
  if (g_noting) g_kernels.push_back({run, bound});
  return g_device_launch(stream, name, prepared_by, run, drop, bound);
}

namespace {

using namespace acltape;  // NOLINT(google-build-using-namespace): one small program

constexpr int kBatch = 16;

bool LaunchesKernels(const acltape::analyzer::Program& program,
                     const acltape::replayer::LoweredProgram& lowered, int64_t leaf) {
  return program.leaves[leaf].kind == acltape::analyzer::LeafKind::kKernel &&
         !lowered.IsSubstituted(leaf);
}

int Measure(const std::string& path, int rounds) {
  const storage::Reader trace(path);
  acltape::analyzer::Program program = acltape::analyzer::LoadProgram(trace);
  if (program.work.steps.empty()) {
    throw Error(ErrorKind::kTrace, path + " has no steps to replay.");
  }
  const acltape::analyzer::StepRange step = program.work.steps[program.work.steps.size() / 2];

  acltape::replayer::AdoptRecordedSettings(trace);
  acltape::replayer::Device device("");
  g_device_launch = reinterpret_cast<decltype(&SoftLaunchPreparedKernel)>(
      device.library().Symbol("SoftLaunchPreparedKernel"));
  if (g_device_launch == nullptr) {
    throw Error(ErrorKind::kDevice, "the device library is not the soft device.");
  }
  acltape::replayer::Contents contents(program, acltape::replayer::Data::kRecorded, 1);
  const acltape::replayer::LoweredProgram lowered =
      acltape::replayer::LowerProgram(program, contents, {});
  // Every buffer lives from the first leaf to the last, so that a step can run again and again
  // without another buffer in the place of its inputs.
  std::vector<acltape::replayer::HomeMemory::Need> needs = acltape::replayer::EagerNeeds(program);
  for (auto& need : needs) {
    need.first_leaf = 0;
    need.last_leaf = static_cast<int64_t>(program.leaves.size());
  }
  const acltape::replayer::HomeMemory homes(device, program, needs);
  acltape::replayer::Execution execution(device, lowered, contents);

  // Up to the end of the step everything runs once: buffers get their contents, kernels are warm.
  acltape::replayer::EagerExecution eager(execution, homes);
  eager.Bind(0, step.end);
  eager.Run(0, step.end, nullptr, nullptr);
  device.Synchronize();

  std::vector<int64_t> leaves;
  for (int64_t leaf = step.first; leaf < step.end; ++leaf) {
    if (LaunchesKernels(program, lowered, leaf)) leaves.push_back(leaf);
  }
  const auto launch_all = [&] {
    for (const int64_t leaf : leaves) eager.RunWithoutInputs(leaf);
  };
  launch_all();  // the workspace grows as far as needed
  device.Synchronize();
  execution.workspace().Freeze(true);
  const auto& api = device.api();
  aclmdlRI model = nullptr;
  device.Check(api.aclmdlRICaptureBegin(device.stream(), ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL),
               "aclmdlRICaptureBegin");
  g_noting = true;
  launch_all();
  g_noting = false;
  if (g_kernels.empty()) {
    throw Error(ErrorKind::kDevice,
                "no kernel of the step was noted: the operator library launches them by another "
                "function than SoftLaunchPreparedKernel.");
  }
  device.Check(api.aclmdlRICaptureEnd(device.stream(), &model), "aclmdlRICaptureEnd");

  const auto captured = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      device.Check(api.aclmdlRIExecuteAsync(model, device.stream()), "aclmdlRIExecuteAsync");
    }
    device.Synchronize();
  };
  const auto bare = [&] {
    for (const NotedKernel& kernel : g_kernels) {
      if (kernel.run(kernel.bound) != 0) throw Error(ErrorKind::kDevice, "a kernel failed.");
    }
  };
  const auto time = [](const auto& work, int steps) {
    const int64_t begin = acltape::replayer::NowNs();
    work();
    return static_cast<double>(acltape::replayer::NowNs() - begin) / steps;
  };
  const int warmup = std::max(10, rounds / 10);
  for (int i = 0; i < warmup; ++i) {
    captured(1);
    bare();
  }
  std::vector<double> bare_ns, single_ns, single_ratio, batch_ns, batch_ratio;
  for (int i = 0; i < rounds; ++i) {
    single_ns.push_back(time([&] { captured(1); }, 1));
    bare_ns.push_back(time(bare, 1));
    batch_ns.push_back(time([&] { captured(kBatch); }, kBatch));
    single_ratio.push_back(single_ns.back() / bare_ns.back());
    batch_ratio.push_back(batch_ns.back() / bare_ns.back());
  }
  device.Check(api.aclmdlRIDestroy(model), "aclmdlRIDestroy");

  fmt::print("{}: step {}, {} leaves, {} kernels, {} rounds\n", path, step.step, leaves.size(),
             g_kernels.size(), rounds);
  fmt::print("{:<44}{:>10}{:>8}\n", "medians", "us a step", "ratio");
  fmt::print("{:<44}{:>10.1f}{:>8.3f}\n", "bare loop", acltape::base::Median(bare_ns) / 1e3, 1.0);
  fmt::print("{:<44}{:>10.1f}{:>8.3f}   target 1.10\n", "captured, 16 steps a synchronisation",
             acltape::base::Median(batch_ns) / 1e3, acltape::base::Median(batch_ratio));
  fmt::print("{:<44}{:>10.1f}{:>8.3f}   with two thread switches a step\n",
             "captured, a synchronisation every step", acltape::base::Median(single_ns) / 1e3,
             acltape::base::Median(single_ratio));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2000;
  if (argc < 2 || argc > 3 || argv[1][0] == '-' || rounds < 1) {
    fmt::print(stderr, "usage: replay_floor TRACE [ROUNDS]\n");
    return 2;
  }
  try {
    return Measure(argv[1], std::max(3, rounds));
  } catch (const Error& error) {
    fmt::print(stderr, "replay_floor: {}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay_floor: {}\n", error.what());
    return 4;
  }
}
