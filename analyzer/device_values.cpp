#include "analyzer/device_values.h"

#include <unordered_map>
#include <vector>

#include "analyzer/acl_calls.h"
#include "analyzer/leaf_kind.h"
#include "analyzer/level.h"

namespace acltape::analyzer {
namespace {

using storage::Layout;
using storage::Reader;
using storage::Snapshot;
using storage::TensorRef;

// Bytes [first, end) of the device's address space.
struct Range {
  int64_t first = 0;
  int64_t end = 0;
  bool Overlaps(const Range& other) const { return first < other.end && other.first < end; }
};

Range RangeOf(const Reader& trace, const TensorRef& tensor) {
  const int64_t base = trace.GetBuffer(tensor.buffer_id).address;
  const Layout& layout = trace.GetLayout(tensor.layout_id);
  return {base + layout.FirstByte(), base + layout.EndByte()};
}

// What a call of the device left in a tensor of its own: the content of `snapshot`.
struct Kept {
  const Snapshot* snapshot = nullptr;
  TensorRef tensor;
};

// The packed content of both is the same bytes: all of a range in order of address, or elements of
// equal places in row-major order.
bool HasTheBytesOf(const Reader& trace, const Kept& kept, const TensorRef& tensor) {
  const Range from = RangeOf(trace, kept.tensor);
  const Range to = RangeOf(trace, tensor);
  if (from.first != to.first) return false;
  const Layout& kept_layout = trace.GetLayout(kept.tensor.layout_id);
  const Layout& layout = trace.GetLayout(tensor.layout_id);
  if (kept.snapshot->packing == 0 && layout.IsDense()) {
    return kept.snapshot->bytes == to.end - to.first;
  }
  return kept_layout.dtype == layout.dtype && kept_layout.shape == layout.shape &&
         kept_layout.strides == layout.strides;
}

// What the calls of a device left, by the leaf that launched them, in order.
using KeptByLeaf = std::unordered_map<int64_t, std::vector<Kept>>;

// A copy from the host leaves what it read there: it is kept as that, before the call.
constexpr int kCopyDestination = 0;
constexpr int kCopySource = 2;

// The device tensor that a copy from the host has filled; none of any other call.
TensorRef DestinationOfCopy(const Reader& trace, const storage::Call& call) {
  const AclCallKind kind = FindAclFunction(trace.GetOp(call.op_id).name).kind;
  if (kind != AclCallKind::kCopy && kind != AclCallKind::kCopyAsync) return {};
  for (const storage::Argument& argument : trace.Arguments(call)) {
    if (argument.position != kCopyDestination || argument.tensors.empty()) continue;
    return argument.tensors.front();
  }
  return {};
}

KeptByLeaf KeptValues(const Reader& trace, const std::vector<Snapshot>& snapshots) {
  struct Launch {
    int64_t leaf = 0;
    TensorRef copied_to;
  };
  std::unordered_map<int64_t, Launch> launches;
  trace.VisitCalls(/*leaves_only=*/false, [&](const storage::Call& call) {
    if (call.parent_id == 0 || IsLeafDialect(trace.GetOp(call.op_id).dialect)) return;
    launches.emplace(call.call_id, Launch{call.parent_id, DestinationOfCopy(trace, call)});
  });
  KeptByLeaf kept;
  for (const Snapshot& snapshot : snapshots) {
    const auto launch = launches.find(snapshot.call_id);
    if (launch == launches.end()) continue;
    TensorRef tensor;
    if (snapshot.after && snapshot.position >= 0) tensor = snapshot.tensor;
    if (!snapshot.after && snapshot.position == kCopySource) tensor = launch->second.copied_to;
    if (tensor.buffer_id != 0) kept[launch->second.leaf].push_back({&snapshot, tensor});
  }
  return kept;
}

// The value that the leaf's calls left in the tensor; null when none is known to be all of it.
const Snapshot* ValueOf(const Reader& trace, const std::vector<Kept>& kept,
                        const TensorRef& tensor) {
  const Range range = RangeOf(trace, tensor);
  for (auto last = kept.rbegin(); last != kept.rend(); ++last) {
    if (!RangeOf(trace, last->tensor).Overlaps(range)) continue;
    return HasTheBytesOf(trace, *last, tensor) ? last->snapshot : nullptr;
  }
  return nullptr;
}

}  // namespace

int64_t TakeDeviceValues(const Reader& trace, storage::Results& results) {
  if (!HoldsLevel(trace, Level::kAcl) || !HoldsLevel(trace, Level::kAten)) return 0;
  const std::vector<Snapshot> snapshots = trace.Snapshots();
  const KeptByLeaf kept = KeptValues(trace, snapshots);
  int64_t taken = 0;
  trace.VisitCalls(/*leaves_only=*/true, [&](const storage::Call& call) {
    const auto found = kept.find(call.call_id);
    if (found == kept.end()) return;
    const storage::Op& op = trace.GetOp(call.op_id);
    if (!IsLeafDialect(op.dialect)) return;
    const std::vector<storage::Argument> arguments = trace.Arguments(call);
    const LeafKind kind = KindOfLeaf(op, call.status, arguments);
    for (const ArgumentUse& use : UsesOfLeaf(op, kind, arguments)) {
      const storage::Argument& argument = arguments[use.argument];
      const TensorRef& tensor = argument.tensors[use.element];
      if (!use.write || trace.GetBuffer(tensor.buffer_id).device == 0) continue;
      const Snapshot* value = ValueOf(trace, found->second, tensor);
      if (value == nullptr) continue;
      results.AddSameValue(*value, call.call_id, argument.position, tensor);
      ++taken;
    }
  });
  return taken;
}

}  // namespace acltape::analyzer
