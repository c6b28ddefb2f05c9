#include <algorithm>
#include <unordered_map>

#include "analyzer/gate/parts.h"
#include "analyzer/graph/variation.h"
#include "analyzer/program/regions.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer::gate {
namespace {

// The direction of a copy by the buffers that it reads and writes last.
struct CopyPath {
  bool from_host = false;
  bool to_host = false;
  int64_t bytes = 0;
};

CopyPath PathOf(const Work& leaves, size_t call) {
  CopyPath path;
  int64_t read = 0;
  leaves.VisitAccesses(call, [&](const ByteAccess& access) {
    const bool host = leaves.trace->GetBuffer(access.buffer).device == 0;
    (access.write ? path.to_host : path.from_host) = host;
    (access.write ? path.bytes : read) += access.end - access.first;
  });
  if (leaves.dialect == Dialect::kAten) return path;
  // The host's side of a copy is no memory of the device's work.
  path.from_host = leaves.form(call).kind == LeafKind::kSource;
  path.to_host = leaves.form(call).kind == LeafKind::kHostRead;
  path.bytes = std::max(path.bytes, read);
  return path;
}

bool IsCopyOf(const Work& leaves, size_t call) {
  const storage::Op& op = leaves.op(call);
  if (leaves.dialect != Dialect::kAten) return IsCopy(leaves.form(call).acl_kind());
  const meaning::TorchOperator facts = meaning::TorchOperatorOf(op.name, op.overload);
  return facts.passes_on && !facts.unmarked_view;
}

// The most bytes in use at one time.
int64_t PeakBytes(const Work& leaves, const std::vector<size_t>& calls) {
  struct Life {
    size_t first = 0;
    size_t last = 0;
    bool made = false;  // the step writes it before it reads it
    int64_t bytes = 0;
  };
  std::unordered_map<int64_t, Life> lives;
  for (size_t place = 0; place < calls.size(); ++place) {
    leaves.VisitAccesses(calls[place], [&](const ByteAccess& access) {
      const auto [at, fresh] = lives.try_emplace(access.buffer);
      Life& life = at->second;
      if (fresh) life = {place, place, access.write, 0};
      if (life.first == place && !access.write) life.made = false;
      life.last = place;
      life.bytes = std::max(life.bytes, access.end);
    });
  }
  std::vector<int64_t> change(calls.size() + 1);
  int64_t alive = 0;
  for (const auto& [buffer, life] : lives) {
    if (!life.made) {
      alive += life.bytes;
      continue;
    }
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  int64_t peak = alive;
  for (const int64_t one : change) {
    alive += one;
    peak = std::max(peak, alive);
  }
  return peak;
}

void CountCopies(const Work& leaves, const std::vector<size_t>& calls, Measured& measured) {
  int64_t copies = 0;
  int64_t bytes = 0;
  int64_t to_device = 0;
  int64_t to_host = 0;
  for (const size_t call : calls) {
    if (!IsCopyOf(leaves, call)) continue;
    const CopyPath path = PathOf(leaves, call);
    ++copies;
    bytes += path.bytes;
    if (path.from_host && !path.to_host) ++to_device;
    if (!path.from_host && path.to_host) ++to_host;
  }
  measured.values["step.copies"] = static_cast<double>(copies);
  measured.values["step.bytes_copied"] = static_cast<double>(bytes);
  measured.values["step.copies_to_device"] = static_cast<double>(to_device);
  measured.values["step.copies_to_host"] = static_cast<double>(to_host);
}

// Counts what a graph of the step needs from step to step. Only inputs and arguments of calls that
// a graph can hold count.
void CountVariation(const Work& leaves, const SteadySteps& steady,
                    const std::vector<bool>& barriers, Measured& measured) {
  const graph::Variation variation = graph::FindVariation(leaves, steady.family);
  int64_t inputs = 0;
  int64_t bytes = 0;
  for (const graph::StepInput& input : variation.inputs) {
    if (!input.moves || barriers[input.place]) continue;
    ++inputs;
    bytes += input.bytes;
  }
  const auto varying = std::count_if(variation.arguments.begin(), variation.arguments.end(),
                                     [&](const graph::ArgumentVariation& argument) {
                                       return argument.kind != graph::VariationKind::kLayout &&
                                              !barriers[argument.place];
                                     });
  measured.values["step.moving_inputs"] = static_cast<double>(inputs);
  measured.values["step.moving_bytes"] = static_cast<double>(bytes);
  measured.values["step.varying_arguments"] = static_cast<double>(varying);
}

}  // namespace

// Work of the host beside a device is not among the leaves (analyzer/calls/host_work.h).
std::function<bool(size_t call)> WorkOfProgram(const Work& leaves) {
  return [&leaves](size_t call) {
    return leaves.form(call).active() && leaves.calls[call].status == 0;
  };
}

void MeasureLeaves(const Work& leaves, const SteadySteps& steady, Measured& measured) {
  const std::vector<size_t> calls = steady.First();
  std::vector<bool> barriers(calls.size());
  Barriers of_work(leaves);
  size_t capturable = 0;
  int64_t graphs = 0;
  int64_t reads = 0;
  int64_t written = 0;
  size_t run = 0;
  for (size_t place = 0; place < calls.size(); ++place) {
    const size_t call = calls[place];
    const bool read = leaves.form(call).kind == LeafKind::kHostRead;
    barriers[place] = read || !of_work.ReasonOf(call).empty();
    reads += read ? 1 : 0;
    capturable += barriers[place] ? 0 : 1;
    run = barriers[place] ? 0 : run + 1;
    if (run == 2) ++graphs;
    leaves.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write) written += access.end - access.first;
    });
  }
  std::map<std::string, double>& values = measured.values;
  values["step.operators"] = static_cast<double>(calls.size());
  if (!calls.empty()) {
    // Rounded down, so that a share below 100 never reads as 100.
    const auto tenths = static_cast<int64_t>(1000 * capturable / calls.size());
    values["step.capturable"] = static_cast<double>(tenths) / 10;
  }
  values["step.graphs"] = static_cast<double>(graphs);
  values["step.host_reads"] = static_cast<double>(reads);
  values["step.bytes_written"] = static_cast<double>(written);
  values["step.bytes_peak"] = static_cast<double>(PeakBytes(leaves, calls));
  values["program.step_kinds"] = static_cast<double>(steady.kinds);
  values["program.step_shapes"] = static_cast<double>(steady.shapes);
  CountCopies(leaves, calls, measured);
  if (steady.family.steps.size() > 1) CountVariation(leaves, steady, barriers, measured);
}

}  // namespace acltape::analyzer::gate
