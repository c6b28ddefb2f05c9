#include <algorithm>

#include "analyzer/gate/measure.h"

namespace acltape::analyzer::gate {
namespace {

using enum Better;

constexpr MeasureKind kKinds[] = {
    {"program.captured_launches", "", kNeither,
     "operators in the graphs that the program captured"},
    {"program.graphs", "", kNeither, "graphs that the program captured"},
    {"program.step_kinds", "", kLess,
     "groups of two or more steps that have other operators than the rest"},
    {"program.step_shapes", "", kLess,
     "groups of two or more steady steps that have other shapes than the rest"},
    {"program.streams", "", kNeither, "streams on which the program put work"},
    {"step.bytes_copied", "bytes", kLess, "what copies of a step write"},
    {"step.bytes_peak", "bytes", kLess,
     "most bytes in use at one time: of memory of the step from its first to its last use, of all "
     "other memory that the step uses throughout"},
    {"step.bytes_written", "bytes", kLess, "what all operators of a step write"},
    {"step.capturable", "%", kMore, "share of the operators that a graph can hold"},
    {"step.captured", "%", kMore,
     "share of the device's operators that ran in a graph of the program"},
    {"step.copies", "", kLess, "copies, between devices or on one"},
    {"step.copies_to_device", "", kLess, "copies from the host to the device"},
    {"step.copies_to_host", "", kLess, "copies from the device to the host"},
    {"step.executions", "", kNeither, "executions of graphs of the program"},
    {"step.graphs", "", kLess,
     "graphs that a step needs: runs of two or more operators that a graph can hold"},
    {"step.host_reads", "", kLess, "operators that bring a value to the host"},
    {"step.host_waits", "", kLess, "waits of the host for a device, a stream or an event"},
    {"step.launches", "", kLess, "operators that the program launched outside of graphs"},
    {"step.moving_bytes", "bytes", kLess, "the size of the moving inputs"},
    {"step.moving_inputs", "", kLess,
     "inputs that lie elsewhere from step to step, so that a graph needs a copy of them"},
    {"step.operators", "", kLess, "operators that compute, copy or read"},
    {"step.task_updates", "", kLess, "updates of tasks in graphs of the program"},
    {"step.varying_arguments", "", kLess,
     "host arguments that differ from step to step, so that a graph needs an update of them"},
};

}  // namespace

std::span<const MeasureKind> MeasureKinds() { return kKinds; }

const MeasureKind* FindMeasure(std::string_view name) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const MeasureKind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace acltape::analyzer::gate
