#include "analyzer/program/queue_collectives.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "meaning/hccl_numbers.h"

namespace acltape::analyzer {

using storage::Argument;
using storage::Call;

namespace {

// The functions of HCCL by which the adapter does a collective of PyTorch. A word is in the name of
// the operator after its namespace; the first one counts.
struct Collective {
  std::string_view word;
  std::initializer_list<std::string_view> functions;
};

// Messages that the program asked for together (batch_isend_irecv): a leaf for each of them.
constexpr std::string_view kBatch = "HcclBatchSendRecv";

const Collective kCollectives[] = {
    {"reduce_scatter", {"HcclReduceScatter", "HcclReduceScatterV", "HcclReduce"}},
    {"allreduce", {"HcclAllReduce"}},
    {"all_reduce", {"HcclAllReduce"}},
    {"barrier", {"HcclAllReduce", "HcclBarrier"}},
    {"allgather", {"HcclAllGather", "HcclAllGatherV", "HcclBroadcast"}},
    {"all_gather", {"HcclAllGather", "HcclAllGatherV", "HcclBroadcast"}},
    {"alltoall", {"HcclAlltoAll", "HcclAlltoAllV", "HcclAlltoAllVC"}},
    {"all_to_all", {"HcclAlltoAll", "HcclAlltoAllV", "HcclAlltoAllVC"}},
    {"gather", {"HcclAllGather", "HcclAllGatherV"}},
    {"scatter", {"HcclScatter"}},
    {"broadcast", {"HcclBroadcast"}},
    {"reduce", {"HcclReduce"}},
    {"send", {"HcclSend", kBatch}},
    {"recv", {"HcclRecv", kBatch}},
};

constexpr std::string_view kNamespaces[] = {
    "c10d::", "_c10d_functional::", "c10d_functional::", "_c10d_functional_autograd::"};

// The operator without its namespace; empty if it is none of c10d.
std::string_view NameInNamespace(std::string_view name) {
  for (const std::string_view prefix : kNamespaces) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return "";
}

const Collective* FindCollective(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const Collective& row : kCollectives) {
    if (name.find(row.word) != std::string_view::npos) return &row;
  }
  return nullptr;
}

bool MayIssue(std::string_view name, std::string_view function) {
  const auto& functions = FindCollective(name)->functions;
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

}  // namespace

bool IsCollective(std::string_view op_name) {
  return FindCollective(NameInNamespace(op_name)) != nullptr;
}

bool IsMessage(std::string_view op_name) {
  const std::string_view name = NameInNamespace(op_name);
  return FindCollective(name) != nullptr && MayIssue(name, kBatch);
}

int64_t MessagesOfBatch(const storage::Reader& trace, const Call& call) {
  const storage::Op& op = trace.GetOp(call.op_id);
  if (op.dialect != "hccl" || op.name != kBatch) return 0;
  for (const Argument& argument : trace.Arguments(call)) {
    if (argument.kind != storage::ValueKind::kIntList) continue;
    return static_cast<int64_t>(argument.integers.size() / meaning::kItemNumbers);
  }
  return 1;
}

void QueueCollectives::AddLeaf(const Call& leaf) {
  const std::string_view name = NameInNamespace(trace_.GetOp(leaf.op_id).name);
  if (FindCollective(name) == nullptr || leaf.status != 0) return;
  int64_t calls = 1;
  const bool barrier = name == "barrier";
  bool on_device = barrier;
  for (const Argument& argument : trace_.Arguments(leaf)) {
    for (const storage::TensorRef& tensor : argument.tensors) {
      on_device = on_device || trace_.GetBuffer(tensor.buffer_id).device != 0;
    }
    if (argument.position == 0 && name.find("coalesced") != std::string_view::npos) {
      calls = static_cast<int64_t>(argument.tensors.size());
    }
  }
  if (!on_device) return;
  asked_[processes_.Of(leaf.thread_id)].push_back({leaf.call_id, calls, name, barrier});
}

void QueueCollectives::AddCall(const Call& call) {
  const storage::Op& op = trace_.GetOp(call.op_id);
  int64_t& latest = latest_leaf_[call.thread_id];
  if (call.parent_id != 0) {
    latest = std::max(latest, call.parent_id);
    have_calls_.insert(call.parent_id);
  }
  if (op.dialect != "hccl") return;
  const int64_t messages = std::max<int64_t>(1, MessagesOfBatch(trace_, call));
  issued_[processes_.Of(call.thread_id)].push_back(
      {call.call_id, call.parent_id, latest, messages, op.name});
}

bool QueueCollectives::IsPassed(const Asked& asked, const Issued& issued) const {
  // A barrier has no tensor that tells where it is; one on the host calls nothing of the device.
  if (asked.barrier && !have_calls_.contains(asked.leaf)) return true;
  if (issued.leaf != 0) return asked.leaf <= issued.leaf;
  // A batch is issued when the last of its messages has been asked for.
  const bool batch = issued.function == kBatch && MayIssue(asked.function, kBatch);
  return !batch && asked.leaf < issued.after;
}

std::vector<QueueCollectives::Match> QueueCollectives::Finish() const {
  std::vector<Match> matches;
  for (const auto& [process, issued] : issued_) {
    const auto asked = asked_.find(process);
    if (asked == asked_.end()) continue;
    auto leaf = asked->second.begin();
    int64_t calls = 0;  // calls of HCCL for that leaf so far
    for (const Issued& one : issued) {
      while (leaf != asked->second.end() && IsPassed(*leaf, one)) {
        calls = 0;
        ++leaf;
      }
      if (one.leaf != 0) continue;
      if (leaf == asked->second.end() || leaf->leaf > one.call) break;
      if (!MayIssue(leaf->function, one.function)) {
        if (one.function == kBatch) continue;  // the adapter's own, which is no operator
        break;
      }
      matches.push_back({one.call, leaf->leaf});
      if (++calls < leaf->calls) continue;
      calls = 0;
      ++leaf;
      for (int64_t i = 1; i < one.messages && leaf != asked->second.end(); ++i) {
        if (MayIssue(leaf->function, kBatch)) ++leaf;
      }
    }
  }
  return matches;
}

}  // namespace acltape::analyzer
