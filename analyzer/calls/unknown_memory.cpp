#include "analyzer/calls/unknown_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/leaf_kind.h"
#include "storage/error.h"

namespace acltape::analyzer {
namespace {

constexpr std::string_view kNoValues = "meta";

// The tensors of a signature, as far as they matter here.
struct Tensors {
  bool any = false;
  bool unknown = false;             // one lies in memory that its layout names
  std::vector<int32_t> with_bytes;  // slots of tensors that must have a buffer
};

bool IsOpaque(const storage::Layout& layout) {
  return (layout.flags & meaning::kTensorOpaque) != 0;
}

Tensors TensorsOf(const storage::Reader& trace, int64_t signature_id,
                  std::set<std::string>& names) {
  Tensors found;
  for (const storage::SignatureArgument& argument : trace.SignatureArguments(signature_id)) {
    for (const storage::SlotRef& tensor : argument.tensors) {
      if (tensor.layout_id == 0) continue;
      const storage::Layout& layout = trace.GetLayout(tensor.layout_id);
      if (layout.memory == kNoValues || layout.ElementCount() == 0) continue;
      found.any = true;
      if (!layout.memory.empty()) names.insert(layout.memory);
      if (!layout.memory.empty() || IsOpaque(layout)) found.unknown = true;
      if (tensor.has_buffer()) found.with_bytes.push_back(tensor.slot);
    }
  }
  return found;
}

}  // namespace

std::string MemoryCoverage::Sentence() const {
  return fmt::format("{} of {} calls have tensors in memory that the recorder does not know{}",
                     unknown.size(), leaves, memory.empty() ? "" : " (" + memory + ")");
}

MemoryCoverage CoverageOfMemory(const storage::Reader& trace) {
  MemoryCoverage coverage;
  std::unordered_map<int64_t, Tensors> by_signature;
  std::set<std::string> names;
  trace.VisitCalls(/*leaves_only=*/true, [&](const storage::Call& call) {
    if (!IsLeafDialect(trace.GetOp(call.op_id).dialect)) return;
    auto [entry, fresh] = by_signature.try_emplace(call.signature_id);
    if (fresh) entry->second = TensorsOf(trace, call.signature_id, names);
    const Tensors& tensors = entry->second;
    if (!tensors.any) return;
    ++coverage.leaves;
    bool unknown = tensors.unknown;
    for (const int32_t slot : tensors.with_bytes) {
      unknown = unknown || (static_cast<size_t>(slot) < call.buffers.size() &&
                            call.buffers[static_cast<size_t>(slot)] == 0);
    }
    if (unknown) coverage.unknown.insert(call.call_id);
  });
  coverage.memory = fmt::format("{}", fmt::join(names, ", "));
  return coverage;
}

void RequireKnownMemory(const storage::Reader& trace) {
  const MemoryCoverage coverage = CoverageOfMemory(trace);
  if (!coverage.lacks_values()) return;
  throw Error(
      ErrorKind::kCannotJudge,
      fmt::format("'{}' cannot be judged by its values: {}; run the program on an NPU, on the "
                  "soft device, or on the CPU with ordinary tensors, and record that",
                  trace.path(), coverage.Sentence()));
}

}  // namespace acltape::analyzer
