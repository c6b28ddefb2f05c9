#include "analyzer/program/queue_operators.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/leaf_kind.h"

namespace acltape::analyzer {
namespace {

// True if each of the ranges lies in one of the others.
bool AllLieIn(const std::vector<DeviceRange>& ranges, const std::vector<DeviceRange>& others) {
  return std::all_of(ranges.begin(), ranges.end(), [&](const DeviceRange& range) {
    return std::any_of(others.begin(), others.end(),
                       [&](const DeviceRange& other) { return other.Holds(range); });
  });
}

}  // namespace

std::vector<DeviceRange> QueueOperators::WrittenBy(const storage::Call& call) const {
  const storage::Op& op = trace_.GetOp(call.op_id);
  const std::vector<storage::Argument> arguments = trace_.Arguments(call);
  const std::vector<ArgumentUse> uses =
      IsLeafDialect(op.dialect) ? UsesOfLeaf(op, KindOfLeaf(op, call.status, arguments), arguments)
                                : UsesOfAclCall(op.name, arguments);
  std::vector<DeviceRange> written;
  for (const ArgumentUse& use : uses) {
    if (!use.write || use.workspace) continue;
    const storage::TensorRef& tensor =
        arguments[static_cast<size_t>(use.argument)].tensors[static_cast<size_t>(use.element)];
    if (tensor.buffer_id != 0) written.push_back(RangeOf(trace_, tensor));
  }
  return written;
}

void QueueOperators::AddLeaf(const storage::Call& leaf) {
  leaves_.insert(leaf.call_id);
  leaf_threads_.insert(leaf.thread_id);
}

void QueueOperators::AddCall(const storage::Call& call) {
  Queue& queue = queues_[call.thread_id];
  if (call.parent_id == 0) {
    if (queue.leaf != 0) queue.calls.push_back({call.call_id, WrittenBy(call)});
    return;
  }
  const int64_t leaf = leaves_.contains(call.parent_id) ? call.parent_id : 0;
  Close(queue, leaf);
  queue.leaf = leaf;
}

void QueueOperators::Close(Queue& queue, int64_t next_leaf) {
  if (!queue.calls.empty() && queue.leaf == next_leaf) {
    for (const Unnamed& between : queue.calls) queue.matches.push_back({between.call, next_leaf});
  } else if (!queue.calls.empty() && queue.leaf < next_leaf) {
    queue.between.push_back({queue.leaf, next_leaf, std::move(queue.calls), {}});
  }
  queue.calls.clear();
}

void QueueOperators::FindWriters(std::vector<Between*>& places) const {
  // Leaves come in order, and the program asked in order: of the places only a few are open.
  std::sort(places.begin(), places.end(), [](const Between* one, const Between* other) {
    return one->first_leaf < other->first_leaf;
  });
  std::vector<Between*> open;
  size_t next = 0;
  trace_.VisitCalls(/*leaves_only=*/false, [&](const storage::Call& call) {
    std::erase_if(open, [&](const Between* place) {
      return std::max(place->last_leaf, place->calls.back().call) < call.call_id;
    });
    while (next < places.size() && places[next]->first_leaf <= call.call_id) {
      open.push_back(places[next++]);
    }
    const bool is_leaf = leaves_.contains(call.call_id);
    if (open.empty() || (!is_leaf && !leaves_.contains(call.parent_id))) return;
    const std::vector<DeviceRange> written = WrittenBy(call);
    if (written.empty()) return;
    const int64_t process = processes_.Of(call.thread_id);
    for (Between* place : open) {
      if (process != place->process || (is_leaf && call.call_id > place->last_leaf)) continue;
      for (size_t i = 0; i < place->calls.size(); ++i) {
        const std::vector<DeviceRange>& of_call = place->calls[i].written;
        if (call.call_id > place->calls[i].call) continue;  // it came later
        if (of_call.empty() || !AllLieIn(of_call, written)) continue;
        if (is_leaf) {
          place->writers[i].push_back(call.call_id);
        } else {
          std::erase(place->writers[i], call.parent_id);  // a call of its own wrote it
        }
      }
    }
  });
}

std::vector<QueueOperators::Match> QueueOperators::Finish() {
  std::vector<Match> matches;
  std::vector<Between*> places;
  for (auto& [thread, queue] : queues_) {
    if (leaf_threads_.contains(thread)) continue;
    if (queue.leaf != 0) Close(queue, std::numeric_limits<int64_t>::max());
    matches.insert(matches.end(), queue.matches.begin(), queue.matches.end());
    for (Between& place : queue.between) {
      place.process = processes_.Of(thread);
      place.writers.resize(place.calls.size());
      places.push_back(&place);
    }
  }
  if (places.empty()) return matches;
  FindWriters(places);
  for (const Between* place : places) {
    for (size_t i = 0; i < place->calls.size(); ++i) {
      if (place->writers[i].size() != 1) continue;
      matches.push_back({place->calls[i].call, place->writers[i].front()});
    }
  }
  return matches;
}

}  // namespace acltape::analyzer
