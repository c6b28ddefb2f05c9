#include "analyzer/program/queue_copies.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/level.h"
#include "analyzer/program/queue_collectives.h"
#include "analyzer/program/queue_operators.h"

namespace acltape::analyzer {

using storage::Argument;
using storage::Call;
using storage::Layout;
using storage::Reader;
using storage::TensorRef;

namespace {

bool IsOnDevice(const Reader& trace, int64_t buffer) {
  return buffer != 0 && trace.GetBuffer(buffer).device != 0;
}

// A result on the device of a leaf, and the one tensor on the host that the leaf reads.
struct FromHost {
  std::optional<TensorRef> filled;
  std::optional<TensorRef> source;
};

FromHost FromHostOf(const Reader& trace, const Call& leaf) {
  const auto on_device = [&](int64_t buffer) { return IsOnDevice(trace, buffer); };
  const auto count = std::count_if(leaf.buffers.begin(), leaf.buffers.end(), on_device);
  if (count == 0 || count == static_cast<std::ptrdiff_t>(leaf.buffers.size())) return {};
  const std::vector<Argument> arguments = trace.Arguments(leaf);
  FromHost found;
  const LeafKind kind = KindOfLeaf(trace.GetOp(leaf.op_id), leaf.status, arguments);
  for (const ArgumentUse& use : UsesOfLeaf(trace.GetOp(leaf.op_id), kind, arguments)) {
    const TensorRef& tensor = arguments[use.argument].tensors[use.element];
    const bool on_host = !on_device(tensor.buffer_id);
    if (!use.write && on_host) found.source = tensor;
    if (use.write && !on_host) found.filled = tensor;
  }
  return found;
}

// True if a copy of bytes makes the one tensor from the other.
bool IsCopiedAsItIs(const Layout& from, const Layout& to) {
  return from.dtype == to.dtype && from.shape == to.shape && from.strides == to.strides &&
         from.IsDense();
}

// The address on the host at which a copy reads. Empty for a copy from a device.
std::optional<int64_t> HostSourceOf(const Reader& trace, const Call& copy) {
  for (const Argument& argument : trace.Arguments(copy)) {
    if (argument.position != kCopyFrom) continue;
    if (argument.tensors.empty()) return argument.integer;
    const TensorRef& from = argument.tensors.front();
    if (!IsOnDevice(trace, from.buffer_id)) return RangeOf(trace, from).first;
  }
  return std::nullopt;
}

}  // namespace

QueueCopies::Way QueueCopies::WayTo(const Call& call, const TensorRef& filled) const {
  const DeviceRange range = RangeOf(trace_, filled);
  return {processes_.Of(call.thread_id), range.first, range.end, 0};
}

void QueueCopies::AddLeaf(const Call& leaf) {
  times_of_[leaf.call_id] = {leaf.begin_ns, leaf.end_ns};
  leaf_threads_.insert(leaf.thread_id);
  const FromHost found = FromHostOf(trace_, leaf);
  if (!found.filled || !found.source) return;
  const Layout& to = trace_.GetLayout(found.filled->layout_id);
  if (!to.IsDense()) return;
  Way way = WayTo(leaf, *found.filled);
  if (IsCopiedAsItIs(trace_.GetLayout(found.source->layout_id), to)) {
    way.source = RangeOf(trace_, *found.source).first;
  }
  waiting_[way].push_back(leaf.call_id);
  wanted_[leaf.call_id] = {way.first, way.end};
}

void QueueCopies::AddOwnCall(const Call& call) {
  const auto leaf = times_of_.find(call.parent_id);
  if (leaf == times_of_.end()) return;
  if (const auto wanted = wanted_.find(call.parent_id); wanted != wanted_.end()) {
    const std::string& function = trace_.GetOp(call.op_id).name;
    const std::vector<Argument> arguments = trace_.Arguments(call);
    const std::vector<ArgumentUse> uses = UsesOfAclCall(function, arguments);
    const bool wrote = std::any_of(uses.begin(), uses.end(), [&](const ArgumentUse& use) {
      const TensorRef& tensor = arguments[use.argument].tensors[use.element];
      return use.write && !use.workspace && RangeOf(trace_, tensor).Overlaps(wanted->second);
    });
    if (wrote) wanted_.erase(wanted);
  }
  Queue& queue = queues_[call.thread_id];
  Settle(call.thread_id, queue, leaf->second.end);
  queue.began = std::max(queue.began, leaf->second.begin);
}

bool QueueCopies::AddCopy(const Call& copy, const TensorRef& filled) {
  const std::optional<int64_t> source = HostSourceOf(trace_, copy);
  if (!source) return false;
  Way way = WayTo(copy, filled);
  way.source = *source;
  queues_[copy.thread_id].copies.push_back({copy.call_id, way});
  return true;
}

int64_t QueueCopies::Take(const Copy& copy, const Way& way, int64_t began, int64_t last) {
  const auto found = waiting_.find(way);
  if (found == waiting_.end()) return 0;
  std::deque<int64_t>& leaves = found->second;
  while (!leaves.empty()) {
    const int64_t leaf = leaves.front();
    const Times& times = times_of_.at(leaf);
    const bool waits = wanted_.contains(leaf) && times.end >= began;
    if (waits && (leaf > copy.call || times.begin > last)) return 0;
    leaves.pop_front();
    wanted_.erase(leaf);
    if (waits) return leaf;
  }
  waiting_.erase(found);
  return 0;
}

void QueueCopies::Settle(int64_t thread, Queue& queue, int64_t last) {
  const std::vector<Copy> copies = std::exchange(queue.copies, {});
  if (copies.empty() || leaf_threads_.contains(thread)) return;
  std::vector<std::pair<Way, Match>> found;
  std::set<Way> too_many;  // copies than leaves
  for (const Copy& copy : copies) {
    Way unknown = copy.way;
    unknown.source = 0;
    int64_t leaf = 0;
    for (const Way& way : {copy.way, unknown}) {
      leaf = Take(copy, way, queue.began, last);
      if (leaf == 0) continue;
      found.push_back({way, {copy.call, leaf}});
      break;
    }
    if (leaf == 0) too_many.insert({copy.way, unknown});
  }
  for (const auto& [way, match] : found) {
    if (!too_many.contains(way)) matches_.push_back(match);
  }
}

std::vector<QueueCopies::Match> QueueCopies::Finish() {
  for (auto& [thread, queue] : queues_) {
    Settle(thread, queue, std::numeric_limits<int64_t>::max());
  }
  return std::move(matches_);
}

TensorRef TargetOfCopy(const Reader& trace, const Call& call) {
  const AclCallKind kind = FindAclFunction(trace.GetOp(call.op_id).name).kind;
  if (kind != AclCallKind::kCopy && kind != AclCallKind::kCopyAsync) return {};
  for (const Argument& argument : trace.Arguments(call)) {
    if (argument.position != kCopyTo || argument.tensors.empty()) continue;
    return argument.tensors.front();
  }
  return {};
}

int64_t NameLeavesOfQueueCopies(const Reader& trace, storage::Results& results) {
  if (!HoldsLevel(trace, Level::kAcl) || !HoldsLevel(trace, Level::kAten)) return 0;
  QueueCopies queue(trace);
  QueueOperators operators(trace);
  QueueCollectives collectives(trace);
  trace.VisitCalls(/*leaves_only=*/false, [&](const Call& call) {
    if (IsLeafDialect(trace.GetOp(call.op_id).dialect)) {
      if (!call.leaf) return;
      queue.AddLeaf(call);
      operators.AddLeaf(call);
      collectives.AddLeaf(call);
      return;
    }
    collectives.AddCall(call);
    // Waits and events are the adapter's own: it makes them for its memory and its streams.
    const bool is_operator = trace.GetOp(call.op_id).name.starts_with("aclnn");
    if (is_operator || call.parent_id != 0) operators.AddCall(call);
    if (call.parent_id != 0) {
      queue.AddOwnCall(call);
      return;
    }
    const TensorRef target = TargetOfCopy(trace, call);
    if (target.buffer_id != 0 && !queue.AddCopy(call, target)) operators.AddCall(call);
  });
  const std::vector<QueueCopies::Match> matches = queue.Finish();
  for (const QueueCopies::Match& match : matches) results.SetParent(match.copy, match.leaf);
  // A copy that has its leaf keeps it.
  for (const QueueOperators::Match& match : operators.Finish()) {
    results.SetParent(match.call, match.leaf);
  }
  for (const QueueCollectives::Match& match : collectives.Finish()) {
    results.SetParent(match.call, match.leaf);
  }
  return static_cast<int64_t>(matches.size());
}

}  // namespace acltape::analyzer
