#include <algorithm>
#include <cstring>

#include "acl/invoke/operator_table.h"
#include "analyzer/calls/record_more.h"
#include "analyzer/lowering/acl_leaf.h"
#include "generated/meaning/parameter_positions.h"
#include "meaning/acl_operators.h"
#include "replayer/acl_level/rank_meeting.h"
#include "replayer/acl_level/task.h"
#include "replayer/device/memory_plan.h"
#include "storage/error.h"
#include "storage/packing.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::TensorUse;
using analyzer::lowering::LoweredTensor;
using storage::Argument;
using Work = AclTask::Work;

TaskBinder::TaskBinder(Device& device, const analyzer::AclProgram& program, const Rooms& rooms,
                       const RankMeeting* ranks)
    : device_(device),
      program_(program),
      rooms_(rooms),
      ranks_(ranks),
      nothing_(device, Block::Kind::kDevice, kDeviceAlignment) {}

Bytes TaskBinder::Payload(const std::string& digest) {
  const auto found = payloads_.find(digest);
  if (found != payloads_.end()) return found->second;
  if (!program_.trace->HasPayload(digest)) return nullptr;
  auto bytes = std::make_shared<const std::vector<uint8_t>>(program_.trace->Payload(digest));
  constexpr int64_t kCacheBytes = int64_t{512} << 20;
  if (payload_bytes_ + static_cast<int64_t>(bytes->size()) > kCacheBytes) {
    payloads_.clear();
    payload_bytes_ = 0;
  }
  payload_bytes_ += static_cast<int64_t>(bytes->size());
  payloads_.emplace(digest, bytes);
  return bytes;
}

uint8_t* TaskBinder::AddressOf(const TensorUse& use) const {
  return rooms_.Address(use.tensor.buffer_id, use.layout->FirstByte());
}

// Binds an operator. With `anywhere` all tensors get one address; this is enough to ask the device
// if it can run the operator.
std::shared_ptr<const BoundCall> TaskBinder::Bound(const AclCall& call, bool anywhere) {
  std::string key = std::to_string(call.form);
  for (const std::vector<TensorUse>* uses : {&call.reads, &call.writes}) {
    for (const TensorUse& use : *uses) {
      key += "," + std::to_string(use.argument) + ":" +
             std::to_string(reinterpret_cast<uintptr_t>(anywhere ? nullptr : AddressOf(use)));
    }
  }
  const auto found = bound_.find(key);
  if (!anywhere && found != bound_.end()) return found->second;
  analyzer::lowering::Invocation invocation =
      analyzer::lowering::InvocationOf(*program_.trace, *call.op, call.arguments);
  if (call.communicates) RenameGroups(call, invocation);
  const auto address = [&](const LoweredTensor& tensor) -> uint8_t* {
    if (anywhere || tensor.layout.ElementCount() == 0) return nothing_.data();
    if (tensor.memory.buffer() == 0) {
      throw Error(ErrorKind::kTrace, program_.Describe(call) +
                                         " uses memory that no recorded call allocated; a replay "
                                         "cannot place it");
    }
    return rooms_.Address(tensor.memory.buffer(), tensor.layout.FirstByte());
  };
  auto bound = std::make_shared<const BoundCall>(device_, invocation, address);
  constexpr size_t kKept = 100000;
  if (bound_.size() >= kKept) bound_.clear();
  if (!anywhere) bound_.emplace(key, bound);
  return bound;
}

// The groups of the replay have other names than those of the recording.
void TaskBinder::RenameGroups(const AclCall& call,
                              analyzer::lowering::Invocation& invocation) const {
  const acl::OperatorInfo* info = acl::FindOperator(call.op->name);
  const size_t count = info == nullptr ? 0 : info->arg_count;
  for (size_t i = 0; i < std::min(count, invocation.arguments.size()); ++i) {
    analyzer::lowering::LoweredValue& value = invocation.arguments[i];
    if (info->args[i].kind != acl::ArgKind::kString || !meaning::IsGroupName(info->args[i].name)) {
      continue;
    }
    if (!value.text.empty()) value.text = ranks_->NameOf(value.text, program_.Describe(call));
  }
}

void TaskBinder::Probe() {
  for (const AclCall& call : program_.calls) {
    if (call.kind() != AclCallKind::kOperator || call.fate != analyzer::AclFate::kIssued) continue;
    if (call.communicates && ranks_ == nullptr) continue;  // it will not run
    const auto [form, first] = refused_forms_.try_emplace(call.form, false);
    if (first) {
      try {
        Bound(call, /*anywhere=*/true)->Probe(device_);
      } catch (const UnsupportedOperator& cause) {
        form->second = true;
        Refusal& refusal = refusals_[call.op->name];
        refusal.reason = cause.what();
        if (refusal.first_call == 0) refusal.first_call = call.call.call_id;
      }
    }
    if (!form->second) continue;
    Substitute(call);  // throws if the trace lacks its results
    ++refusals_[call.op->name].calls;
  }
}

AclTask TaskBinder::BindOperator(const AclCall& call) {
  AclTask task;
  task.call = &call;
  task.bound = Bound(call, /*anywhere=*/false);
  for (const Argument& argument : call.arguments) {
    if (argument.name != "workspace" || argument.tensors.empty() ||
        argument.tensors[0].buffer_id == 0) {
      continue;
    }
    const storage::Layout& layout = program_.trace->GetLayout(argument.tensors[0].layout_id);
    task.workspace = rooms_.Address(argument.tensors[0].buffer_id, layout.FirstByte());
    task.workspace_bytes = static_cast<uint64_t>(layout.EndByte() - layout.FirstByte());
  }
  return task;
}

// Returns uploads of recorded results, in place of an operator that the device cannot run, or of
// a collective, for which a replay has no other ranks.
std::vector<AclTask> TaskBinder::Substitute(const AclCall& call) {
  std::vector<AclTask> tasks;
  for (const TensorUse& use : call.writes) {
    if (use.layout->ElementCount() == 0) continue;
    const storage::Snapshot* result = nullptr;
    for (const storage::Snapshot& snapshot : call.after) {
      const bool same = snapshot.position == use.argument &&
                        snapshot.tensor.tensor_id() == use.tensor.tensor_id();
      if (same && snapshot.has_payload) result = &snapshot;
    }
    if (result == nullptr) {
      const auto refusal = refusals_.find(call.op->name);
      const std::string why =
          refusal == refusals_.end() ? "a replay has no other ranks" : refusal->second.reason;
      throw Error(ErrorKind::kTrace, program_.Describe(call) + " cannot run on this device (" +
                                         why + ") and the trace does not hold its results; " +
                                         analyzer::HowToRecordMore(*program_.trace));
    }
    const Bytes packed = Payload(result->digest);
    const storage::Layout& layout = *use.layout;
    auto span = std::make_shared<std::vector<uint8_t>>(layout.EndByte() - layout.FirstByte());
    if (result->packing == 0) {
      *span = *packed;
    } else {
      UnpackRowMajor(layout, packed->data(), span->data());
    }
    analyzer::ByteSet elements;
    analyzer::AddElements(layout, elements);
    for (const auto& part : elements.Within(layout.FirstByte(), layout.EndByte())) {
      AclTask task;
      task.call = &call;
      task.work = Work::kCopy;
      task.content = span;
      task.content_at = static_cast<size_t>(part.first - layout.FirstByte());
      task.copy.kind = ACL_MEMCPY_HOST_TO_DEVICE;
      task.copy.bytes = static_cast<size_t>(part.end - part.first);
      task.copy.to = rooms_.Address(use.tensor.buffer_id, part.first);
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::vector<AclTask> TaskBinder::BindCopy(const AclCall& call, bool stored) {
  const bool plane =
      call.kind() == AclCallKind::kCopy2d || call.kind() == AclCallKind::kCopy2dAsync;
  const TensorUse* to = call.Use(analyzer::kCopyTo);
  const TensorUse* from = call.Use(analyzer::kCopyFrom);
  const bool to_host = to == nullptr || rooms_.IsHost(to->tensor.buffer_id);
  const bool from_host = from == nullptr || rooms_.IsHost(from->tensor.buffer_id);
  AclTask task;
  task.call = &call;
  task.work = Work::kCopy;
  Transfer& copy = task.copy;
  namespace rows = meaning::position::aclrtMemcpy2d;
  copy.bytes = static_cast<size_t>(
      call.Integer(plane ? rows::kWidth : meaning::position::aclrtMemcpy::kCount));
  if (plane) {
    copy.to_pitch = static_cast<size_t>(call.Integer(rows::kDpitch));
    copy.from_pitch = static_cast<size_t>(call.Integer(rows::kSpitch));
    copy.width = copy.bytes;
    copy.rows = static_cast<size_t>(call.Integer(rows::kHeight));
    if (copy.rows == 0) return {};
    copy.bytes = (copy.rows - 1) * copy.from_pitch + copy.width;
  }
  if (copy.bytes == 0 || (plane && copy.width == 0)) return {};
  if (to != nullptr) copy.to = AddressOf(*to);
  if (from != nullptr) copy.from = AddressOf(*from);
  if (to_host && from_host) return {};  // the device does nothing
  copy.kind = to_host     ? ACL_MEMCPY_DEVICE_TO_HOST
              : from_host ? ACL_MEMCPY_HOST_TO_DEVICE
                          : ACL_MEMCPY_DEVICE_TO_DEVICE;
  if (copy.kind == ACL_MEMCPY_HOST_TO_DEVICE && !stored) {
    const storage::Snapshot* source = call.Before(analyzer::kCopyFrom);
    task.content = source == nullptr ? nullptr : Payload(source->digest);
    if (task.content == nullptr) {
      throw Error(ErrorKind::kTrace, program_.Describe(call) +
                                         " needs the bytes that it copied, which the trace does "
                                         "not hold; " +
                                         analyzer::HowToRecordInputs(*program_.trace));
    }
    if (plane && task.content->size() == copy.width * copy.rows) {
      copy.from_pitch = copy.width;  // the recording holds no gaps between rows
      copy.bytes = task.content->size();
    }
    if (task.content->size() < copy.bytes) {
      throw Error(ErrorKind::kTrace, program_.Describe(call) + " copied " +
                                         std::to_string(copy.bytes) + " bytes, the trace holds " +
                                         std::to_string(task.content->size()) +
                                         " of them; record the program again");
    }
    copy.from = nullptr;
  }
  return {std::move(task)};
}

uint8_t* TaskBinder::AddressAt(const AclCall& call, int position, int element) const {
  const TensorUse* use = call.Use(position, element);
  if (use == nullptr) {
    throw Error(ErrorKind::kTrace, program_.Describe(call) +
                                       " works on memory that no recorded call allocated; a replay "
                                       "cannot place it");
  }
  return AddressOf(*use);
}

AclTask TaskBinder::BindReduce(const AclCall& call) const {
  namespace reduce = meaning::position::aclrtReduceAsync;
  AclTask task;
  task.call = &call;
  task.work = Work::kReduce;
  task.copy.to = AddressAt(call, reduce::kDst);
  task.copy.from = AddressAt(call, reduce::kSrc);
  task.copy.bytes = static_cast<size_t>(call.Integer(reduce::kCount));
  task.value = static_cast<uint64_t>(call.Integer(reduce::kKind));
  task.flag = static_cast<uint32_t>(call.Integer(reduce::kType));
  return task;
}

// The struct is as it was recorded. The addresses in it are those of the replay, from the arguments
// that the recorder added.
AclTask TaskBinder::BindRandom(const AclCall& call) const {
  namespace added = meaning::position::aclrtRandomNumAsync;
  const std::vector<int64_t> words =
      call.arguments.empty() ? std::vector<int64_t>() : call.arguments[0].integers;
  auto info = std::make_shared<aclrtRandomNumTaskInfo>();
  if (words.size() * sizeof(int64_t) != sizeof(*info)) {
    throw Error(ErrorKind::kTrace, program_.Describe(call) + " has no parameters in " +
                                       program_.trace->path() +
                                       "; record the program again, with this version of acltape");
  }
  std::memcpy(info.get(), words.data(), sizeof(*info));
  info->randomParaAddr = nullptr;
  info->randomResultAddr = AddressAt(call, added::kResult);
  info->randomCounterAddr = AddressAt(call, added::kCounter);
  const auto place = [&](aclrtRandomParaInfo& parameter, int position) {
    if (parameter.isAddr == 0) return;
    const uint8_t* address = AddressAt(call, position);
    std::memcpy(parameter.valueOrAddr, &address, sizeof(address));
  };
  auto& numbers = info->randomNumFuncParaInfo;
  place(info->randomSeed, added::kSeed);
  place(info->randomNum, added::kNumber);
  place(numbers.paramInfo.uniformDisInfo.min, added::kFirst);
  if (numbers.funcType != ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK) {
    place(numbers.paramInfo.uniformDisInfo.max, added::kSecond);
  }
  AclTask task;
  task.call = &call;
  task.work = Work::kRandom;
  task.random = std::move(info);
  return task;
}

std::vector<AclTask> TaskBinder::BindCollective(const AclCall& call) {
  if (ranks_ == nullptr) return Substitute(call);
  AclTask task;
  task.call = &call;
  task.work = Work::kCollective;
  task.collective = acl_level::BindCollective(program_, call, [&](int position, int element) {
    return AddressAt(call, position, element);
  });
  return {std::move(task)};
}

AclTask TaskBinder::BindFill(const AclCall& call) const {
  namespace position = meaning::position;
  AclTask task;
  task.call = &call;
  switch (call.kind()) {
    case AclCallKind::kValueWrite:
      task.work = Work::kValueWrite;
      task.copy.to = AddressAt(call, position::aclrtValueWrite::kDevAddr);
      task.value = static_cast<uint64_t>(call.Integer(position::aclrtValueWrite::kValue));
      task.flag = static_cast<uint32_t>(call.Integer(position::aclrtValueWrite::kFlag));
      task.copy.bytes = sizeof(uint64_t);
      break;
    case AclCallKind::kFill32:
    case AclCallKind::kFill32Async:
      task.work = Work::kFill32;
      task.copy.to = AddressAt(call, position::aclrtMemsetD32::kPtr);
      task.value = static_cast<uint64_t>(call.Integer(position::aclrtMemsetD32::kValue));
      task.copy.bytes = static_cast<size_t>(call.Integer(position::aclrtMemsetD32::kN)) * 4;
      break;
    default:
      task.work = Work::kFill;
      task.copy.to = AddressAt(call, position::aclrtMemset::kDevPtr);
      task.value = static_cast<uint64_t>(call.Integer(position::aclrtMemset::kValue));
      task.copy.bytes = static_cast<size_t>(call.Integer(position::aclrtMemset::kCount));
      break;
  }
  return task;
}

std::vector<AclTask> TaskBinder::Bind(const AclCall& call) {
  switch (call.kind()) {
    case AclCallKind::kOperator: {
      if (call.communicates && ranks_ == nullptr) return Substitute(call);
      const auto refused = refused_forms_.find(call.form);
      if (refused != refused_forms_.end() && refused->second) return Substitute(call);
      return {BindOperator(call)};
    }
    case AclCallKind::kCopy:
    case AclCallKind::kCopyAsync:
    case AclCallKind::kCopy2d:
    case AclCallKind::kCopy2dAsync:
      return BindCopy(call, /*stored=*/false);
    case AclCallKind::kCollective:
      return BindCollective(call);
    case AclCallKind::kReduce:
      return {BindReduce(call)};
    case AclCallKind::kRandom:
      return {BindRandom(call)};
    default: {
      AclTask task = BindFill(call);
      if (task.copy.bytes == 0) return {};
      return {std::move(task)};
    }
  }
}

std::vector<AclTask> TaskBinder::BindStored(const AclCall& call) {
  // Each execution received something else.
  if (call.TakesFromRanks() && ranks_ == nullptr) return {};
  const bool copy =
      call.kind() == AclCallKind::kCopyAsync || call.kind() == AclCallKind::kCopy2dAsync;
  return copy ? BindCopy(call, /*stored=*/true) : Bind(call);
}

}  // namespace acltape::replayer::acl_level
