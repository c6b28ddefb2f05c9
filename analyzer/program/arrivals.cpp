#include "analyzer/program/arrivals.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/program/batch_leaves.h"
#include "analyzer/program/device_range.h"
#include "analyzer/program/missing_values.h"
#include "analyzer/program/queue_collectives.h"
#include "meaning/dialects.h"

namespace acltape::analyzer {
namespace {

using storage::Snapshot;
using storage::TensorRef;

// The calls of the ACL interface that an exchange on a device issued.
struct IssuedCalls {
  bool any = false;  // there is one of HCCL
  std::vector<DeviceRange> written;
};
using IssuedByLeaf = std::unordered_map<int64_t, IssuedCalls>;

IssuedByLeaf CallsOfExchanges(const Program& program) {
  IssuedByLeaf inside;
  const storage::Reader& trace = *program.trace;
  for (const Leaf& leaf : program.leaves) {
    if (leaf.kind != LeafKind::kExchange) continue;
    const bool on_device = std::ranges::any_of(leaf.call.buffers, [&](int64_t buffer) {
      return buffer != 0 && trace.GetBuffer(buffer).device != 0;
    });
    if (on_device) inside[leaf.call.call_id];
  }
  if (inside.empty()) return inside;
  const BatchLeaves batches(trace);
  trace.VisitCalls(/*leaves_only=*/false, [&](const storage::Call& call) {
    if (call.parent_id == 0 || call.status != 0) return;
    const storage::Op& op = trace.GetOp(call.op_id);
    if (!meaning::IsAclDialect(op.dialect)) return;
    for (const int64_t id : batches.Of(call)) {
      const auto leaf = inside.find(id);
      if (leaf == inside.end()) continue;
      leaf->second.any = leaf->second.any || op.dialect == "hccl";
      const std::vector<storage::Argument> arguments = trace.Arguments(call);
      for (const ArgumentUse& use : UsesOfAclLeaf(op.name, LeafKind::kKernel, arguments)) {
        const TensorRef& tensor =
            arguments[static_cast<size_t>(use.argument)].tensors[static_cast<size_t>(use.element)];
        if (use.write && tensor.buffer_id != 0) {
          leaf->second.written.push_back(RangeOf(trace, tensor));
        }
      }
    }
  });
  return inside;
}

// Bytes of a buffer that an exchange received and that nobody has touched since.
struct Arrival {
  int64_t exchange = 0;  // leaf
  TensorRef tensor;
  int64_t first = 0;
  int64_t end = 0;
  const Snapshot* result = nullptr;  // null: not known
};

class Arrivals {
 public:
  explicit Arrivals(Program& program) : program_(program), inside_(CallsOfExchanges(program)) {}

  void Add() {
    if (inside_.empty()) return;
    for (Leaf& leaf : program_.leaves) {
      if (leaf.kind == LeafKind::kExchange) {
        Receive(leaf);
      } else if (!waiting_.empty()) {
        Touch(leaf);
      }
    }
  }

 private:
  void Receive(const Leaf& leaf) {
    const auto found = inside_.find(leaf.call.call_id);
    if (found == inside_.end()) return;
    const IssuedCalls& inside = found->second;
    for (const TensorUse& use : UsesOf(program_, leaf).writes) {
      if (use.tensor.buffer_id == 0 || use.layout->ElementCount() == 0) continue;
      if (program_.trace->GetBuffer(use.tensor.buffer_id).device == 0) continue;
      const DeviceRange range = RangeOf(*program_.trace, use.tensor);
      // Where the calls of HCCL are not known, nobody knows what the collective received.
      const bool received = (!inside.any && IsCollective(leaf.op->name)) ||
                            std::ranges::any_of(inside.written, [&](const DeviceRange& bytes) {
                              return bytes.Overlaps(range);
                            });
      if (!received) continue;
      Arrival arrival{leaf.index, use.tensor, use.layout->FirstByte(), use.layout->EndByte(),
                      RecordedResult(leaf, use)};
      // A content in another order than that of the addresses cannot be put there in one piece.
      if (arrival.result != nullptr && arrival.result->packing != 0) arrival.result = nullptr;
      std::erase_if(waiting_, [&](const Arrival& older) {
        return older.tensor.buffer_id == arrival.tensor.buffer_id && arrival.first <= older.first &&
               older.end <= arrival.end;
      });
      waiting_.push_back(arrival);
    }
  }

  void Touch(Leaf& leaf) {
    const LeafUses uses = UsesOf(program_, leaf);
    std::erase_if(waiting_, [&](const Arrival& arrival) {
      const auto touches = [&](const TensorUse& use) {
        return use.tensor.buffer_id == arrival.tensor.buffer_id &&
               use.layout->FirstByte() < arrival.end && arrival.first < use.layout->EndByte();
      };
      const bool read = std::ranges::any_of(uses.reads, touches);
      const auto writer = std::ranges::find_if(uses.writes, touches);
      if (!read && writer == uses.writes.end()) return false;
      const bool overwritten = !read && writer->layout->IsDense() &&
                               writer->layout->FirstByte() <= arrival.first &&
                               arrival.end <= writer->layout->EndByte();
      if (!overwritten) Give(arrival, leaf);
      return true;
    });
  }

  void Give(const Arrival& arrival, Leaf& leaf) {
    if (arrival.result == nullptr) {
      if (program_.lacks.empty()) {
        program_.lacks = program_.Describe(leaf.index) + " reads what " +
                         program_.Describe(arrival.exchange) +
                         " received, which the trace does not hold at PyTorch's level; " +
                         HowToHaveResults(program_);
      }
      return;
    }
    Snapshot content = *arrival.result;
    content.call_id = leaf.call.call_id;
    content.position = -1;
    content.after = false;
    content.tensor = arrival.tensor;
    leaf.before.push_back(std::move(content));
  }

  Program& program_;
  const IssuedByLeaf inside_;
  std::vector<Arrival> waiting_;
};

}  // namespace

void AddArrivals(Program& program) { Arrivals(program).Add(); }

}  // namespace acltape::analyzer
