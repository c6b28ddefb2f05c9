#include "analyzer/program/device_values.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/level.h"
#include "analyzer/program/batch_leaves.h"
#include "analyzer/program/device_range.h"
#include "analyzer/program/queue_collectives.h"
#include "analyzer/program/queue_copies.h"
#include "storage/packing.h"

namespace acltape::analyzer {
namespace {

using storage::Layout;
using storage::Reader;
using storage::Snapshot;
using storage::TensorRef;

// A result of a call of the device: the content of `snapshot` in a tensor of that call.
struct Kept {
  const Snapshot* snapshot = nullptr;
  TensorRef tensor;
};

// True if both packed contents have the same bytes: a whole range in order of address, or elements
// at equal places in row-major order.
bool HasTheBytesOf(const Reader& trace, const Kept& kept, const TensorRef& tensor) {
  const DeviceRange from = RangeOf(trace, kept.tensor);
  const DeviceRange to = RangeOf(trace, tensor);
  if (from.first != to.first) return false;
  const Layout& kept_layout = trace.GetLayout(kept.tensor.layout_id);
  const Layout& layout = trace.GetLayout(tensor.layout_id);
  if (kept.snapshot->packing == 0 && layout.IsDense()) {
    return kept.snapshot->bytes == to.end - to.first;
  }
  return kept_layout.dtype == layout.dtype && kept_layout.shape == layout.shape &&
         kept_layout.strides == layout.strides;
}

// A copy of all bytes from one tensor without gaps to another.
struct Copied {
  int64_t call_id = 0;
  DeviceRange to;
  DeviceRange from;
};

// The device's calls that a leaf launched, in order: their results, and the copies of a collective,
// which brings what it received in one memory to its tensors.
struct Launched {
  std::vector<Kept> kept;
  std::vector<Copied> copies;
};
using LaunchedByLeaf = std::unordered_map<int64_t, Launched>;

std::optional<Copied> CopyOf(const Reader& trace, const storage::Call& call) {
  TensorRef to;
  TensorRef from;
  for (const storage::Argument& argument : trace.Arguments(call)) {
    if (argument.kind != storage::ValueKind::kTensor) continue;
    (argument.direction == storage::Direction::kIn ? from : to) = argument.tensors[0];
  }
  if (to.buffer_id == 0 || from.buffer_id == 0) return std::nullopt;
  const Layout& written = trace.GetLayout(to.layout_id);
  const Layout& read = trace.GetLayout(from.layout_id);
  const bool same = written.dtype == read.dtype && written.shape == read.shape &&
                    written.strides == read.strides && written.IsDense();
  if (!same) return std::nullopt;
  return Copied{call.call_id, RangeOf(trace, to), RangeOf(trace, from)};
}

LaunchedByLeaf KeptValues(const Reader& trace, const std::vector<Snapshot>& snapshots) {
  struct Launch {
    std::vector<int64_t> leaves;
    TensorRef copied_to;
  };
  const BatchLeaves batches(trace);
  std::unordered_map<int64_t, Launch> launches;
  std::unordered_set<int64_t> collectives;  // leaves
  LaunchedByLeaf launched;
  trace.VisitCalls(/*leaves_only=*/false, [&](const storage::Call& call) {
    const storage::Op& op = trace.GetOp(call.op_id);
    if (IsLeafDialect(op.dialect)) {
      if (IsCollective(op.name)) collectives.insert(call.call_id);
      return;
    }
    if (call.parent_id == 0) return;
    if (op.name == "aclnnInplaceCopy" && call.status == 0 && collectives.contains(call.parent_id)) {
      const std::optional<Copied> copy = CopyOf(trace, call);
      if (copy) launched[call.parent_id].copies.push_back(*copy);
    }
    launches.emplace(call.call_id, Launch{batches.Of(call), TargetOfCopy(trace, call)});
  });
  for (const Snapshot& snapshot : snapshots) {
    const auto launch = launches.find(snapshot.call_id);
    if (launch == launches.end()) continue;
    TensorRef tensor;
    if (snapshot.after && snapshot.position >= 0) tensor = snapshot.tensor;
    // The value that a copy to the host leaves was read where it came from.
    if (snapshot.after && snapshot.position == kCopyTo && launch->second.copied_to.buffer_id != 0) {
      tensor = launch->second.copied_to;
    }
    // A copy from the host writes the bytes that it read.
    if (!snapshot.after && snapshot.position == kCopyFrom) tensor = launch->second.copied_to;
    if (tensor.buffer_id == 0) continue;
    for (const int64_t leaf : launch->second.leaves) {
      launched[leaf].kept.push_back({&snapshot, tensor});
    }
  }
  return launched;
}

// Builds a result from parts: its bytes in order of address.
class Assembly {
 public:
  Assembly(const Reader& trace, const TensorRef& tensor)
      : trace_(trace),
        layout_(trace.GetLayout(tensor.layout_id)),
        range_(RangeOf(trace, tensor)),
        bytes_(range_.end - range_.first),
        known_(bytes_.size()) {}

  // Takes from an earlier call the bytes that later ones did not write.
  void FillWith(const Kept& kept) {
    const std::vector<uint8_t> packed = trace_.Payload(kept.snapshot->digest);
    const DeviceRange from = RangeOf(trace_, kept.tensor);
    const Layout& layout = trace_.GetLayout(kept.tensor.layout_id);
    if (kept.snapshot->packing == 0) {
      if (static_cast<int64_t>(packed.size()) != from.end - from.first) return;
      Take(packed.data(), from.first, from.end - from.first);
      return;
    }
    const int64_t size = storage::DTypeBytes(layout.dtype);
    if (static_cast<int64_t>(packed.size()) != layout.ElementCount() * size) return;
    const uint8_t* element = packed.data();
    storage::ForEachElement(layout, [&](int64_t offset) {
      Take(element, from.first + offset, size);
      element += size;
    });
  }

  void FillWith(const std::vector<uint8_t>& bytes, int64_t address) {
    Take(bytes.data(), address, static_cast<int64_t>(bytes.size()));
  }

  bool Complete() const {
    if (layout_.IsDense()) {
      return std::all_of(known_.begin(), known_.end(), [](char known) { return known != 0; });
    }
    const int64_t size = storage::DTypeBytes(layout_.dtype);
    bool complete = true;
    storage::ForEachElement(layout_, [&](int64_t offset) {
      for (int64_t i = 0; i < size; ++i) complete = complete && known_[offset + i] != 0;
    });
    return complete;
  }

  // The bytes, packed as the recorded content of such a tensor.
  std::vector<uint8_t> Packed() const {
    if (layout_.IsDense()) return bytes_;
    std::vector<uint8_t> packed(layout_.ElementCount() * storage::DTypeBytes(layout_.dtype));
    storage::PackRowMajor(layout_, bytes_.data(), packed.data());
    return packed;
  }

 private:
  void Take(const uint8_t* from, int64_t address, int64_t count) {
    const int64_t begin = std::max(address, range_.first);
    const int64_t end = std::min(address + count, range_.end);
    for (int64_t byte = begin; byte < end; ++byte) {
      char& known = known_[byte - range_.first];
      if (known == 0) bytes_[byte - range_.first] = from[byte - address];
      known = 1;
    }
  }

  const Reader& trace_;
  const Layout& layout_;
  DeviceRange range_;
  std::vector<uint8_t> bytes_;
  std::vector<char> known_;
};

// The bytes of an address range before a call, from the last result that was kept there; empty: not
// known.
std::vector<uint8_t> BytesBefore(const Reader& trace, const std::vector<Kept>& kept,
                                 int64_t call_id, const DeviceRange& range) {
  for (auto last = kept.rbegin(); last != kept.rend(); ++last) {
    const DeviceRange own = RangeOf(trace, last->tensor);
    if (last->snapshot->call_id > call_id || !own.Overlaps(range)) continue;
    if (!own.Holds(range) || last->snapshot->packing != 0 || !last->snapshot->has_payload) {
      return {};
    }
    const std::vector<uint8_t> bytes = trace.Payload(last->snapshot->digest);
    if (static_cast<int64_t>(bytes.size()) != own.end - own.first) return {};
    return {bytes.begin() + (range.first - own.first), bytes.begin() + (range.end - own.first)};
  }
  return {};
}

// Gives a result of a collective the value that copies brought there, whose own results were not
// kept. Returns false when a part of it is not known.
bool TakeCopiedValue(const Reader& trace, const Launched& launched, int64_t leaf, int position,
                     const TensorRef& tensor, storage::Results& results) {
  const DeviceRange range = RangeOf(trace, tensor);
  std::optional<Assembly> whole;
  for (auto copy = launched.copies.rbegin(); copy != launched.copies.rend(); ++copy) {
    if (!copy->to.Overlaps(range)) continue;
    const std::vector<uint8_t> bytes = BytesBefore(trace, launched.kept, copy->call_id, copy->from);
    if (bytes.empty()) return false;
    if (!whole) whole.emplace(trace, tensor);
    whole->FillWith(bytes, copy->to.first);
    if (!whole->Complete()) continue;
    results.AddValue(leaf, position, tensor, trace.GetLayout(tensor.layout_id).IsDense(),
                     whole->Packed());
    return true;
  }
  return false;
}

// Gives a result of a leaf the value that the leaf's calls left there. Returns false when a part of
// it is not known.
bool TakeValue(const Reader& trace, const Launched& launched, int64_t leaf, int position,
               const TensorRef& tensor, storage::Results& results) {
  const std::vector<Kept>& kept = launched.kept;
  const DeviceRange range = RangeOf(trace, tensor);
  std::optional<Assembly> whole;  // set once the last call wrote only a part
  for (auto last = kept.rbegin(); last != kept.rend(); ++last) {
    if (!RangeOf(trace, last->tensor).Overlaps(range)) continue;
    if (!whole && HasTheBytesOf(trace, *last, tensor)) {
      results.AddSameValue(*last->snapshot, leaf, position, tensor);
      return true;
    }
    // Statistics or digests alone have no bytes, so nothing can be built from them.
    if (!last->snapshot->has_payload) return false;
    if (!whole) whole.emplace(trace, tensor);
    whole->FillWith(*last);
    if (!whole->Complete()) continue;
    results.AddValue(leaf, position, tensor, trace.GetLayout(tensor.layout_id).IsDense(),
                     whole->Packed());
    return true;
  }
  return TakeCopiedValue(trace, launched, leaf, position, tensor, results);
}

}  // namespace

int64_t TakeDeviceValues(const Reader& trace, storage::Results& results) {
  if (!HoldsLevel(trace, Level::kAcl) || !HoldsLevel(trace, Level::kAten)) return 0;
  const std::vector<Snapshot> snapshots = trace.Snapshots();
  const LaunchedByLeaf launched = KeptValues(trace, snapshots);
  // True if the recorder kept the result itself, as it does for one that lies on the host when the
  // leaf returns.
  const auto is_recorded = [&](int64_t call_id, int position) {
    auto row = std::lower_bound(
        snapshots.begin(), snapshots.end(), call_id,
        [](const Snapshot& snapshot, int64_t id) { return snapshot.call_id < id; });
    for (; row != snapshots.end() && row->call_id == call_id; ++row) {
      if (row->after && row->position == position) return true;
    }
    return false;
  };
  int64_t taken = 0;
  trace.VisitCalls(/*leaves_only=*/true, [&](const storage::Call& call) {
    const auto found = launched.find(call.call_id);
    if (found == launched.end()) return;
    const storage::Op& op = trace.GetOp(call.op_id);
    if (!IsLeafDialect(op.dialect)) return;
    const std::vector<storage::Argument> arguments = trace.Arguments(call);
    const LeafKind kind = KindOfLeaf(op, call.status, arguments);
    for (const ArgumentUse& use : UsesOfLeaf(op, kind, arguments)) {
      const storage::Argument& argument = arguments[use.argument];
      const TensorRef& tensor = argument.tensors[use.element];
      if (!use.write || tensor.buffer_id == 0) continue;
      const bool on_host = trace.GetBuffer(tensor.buffer_id).device == 0;
      if (on_host && is_recorded(call.call_id, argument.position)) continue;
      const bool known =
          TakeValue(trace, found->second, call.call_id, argument.position, tensor, results);
      taken += known ? 1 : 0;
    }
  });
  return taken;
}

}  // namespace acltape::analyzer
