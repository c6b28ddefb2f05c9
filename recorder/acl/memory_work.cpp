#include "recorder/acl/memory_work.h"

#include <string.h>

#include <span>

#include "acl/acl.h"
#include "generated/meaning/parameter_positions.h"
#include "hccl/hccl_types.h"
#include "meaning/hccl_numbers.h"
#include "recorder/acl/communicators.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/thread.h"
#include "recorder/acl/values.h"

namespace acltape::acl_agent {

namespace {

using wire::ArgumentTag;

// Memory that a call names.
struct MemoryUse {
  int32_t position = 0;  // position of the argument, or after all of them
  uint64_t address = 0;  // 0: none
  uint64_t bytes = 0;
  bool read = false;
  bool written = false;
};

// The memory that aclrtRandomNumAsync names follows its arguments.
constexpr int32_t kFirstRandomUse = meaning::position::aclrtRandomNumAsync::kResult;
constexpr int kRandomUses = 6;

struct ElementSize {
  aclDataType type;
  uint64_t bytes;
};
constexpr ElementSize kElementSizes[] = {{ACL_FLOAT, 4}, {ACL_FLOAT16, 2}, {ACL_BF16, 2},
                                         {ACL_INT32, 4}, {ACL_UINT32, 4},  {ACL_INT64, 8},
                                         {ACL_UINT64, 8}};

uint64_t ElementBytesOf(aclDataType type) {
  for (const ElementSize& row : kElementSizes) {
    if (row.type == type) return row.bytes;
  }
  return 1;
}

// The address that a parameter is read from when the task runs; 0: the parameter is a value.
uint64_t AddressOf(const aclrtRandomParaInfo& parameter) {
  uint64_t address = 0;
  if (parameter.isAddr != 0) memcpy(&address, parameter.valueOrAddr, sizeof(address));
  return address;
}

uint64_t ValueOf(const aclrtRandomParaInfo& parameter) {
  uint64_t value = 0;
  const size_t bytes = parameter.size < sizeof(value) ? parameter.size : sizeof(value);
  memcpy(&value, parameter.valueOrAddr, bytes);
  return value;
}

uint64_t ResultBytes(const aclrtRandomNumTaskInfo& task) {
  if (task.randomNum.isAddr != 0) return UINT64_MAX;  // nobody knows yet how many
  const uint64_t count = ValueOf(task.randomNum);
  const bool bits =
      task.randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
  return bits ? (count + 7) / 8 : count * ElementBytesOf(task.dataType);
}

// The order is that of the further arguments in acl/data/meaning.json.
int RandomUses(uint64_t task_info, MemoryUse* uses) {
  aclrtRandomNumTaskInfo task;
  memcpy(&task, reinterpret_cast<const void*>(task_info), sizeof(task));
  const auto& numbers = task.randomNumFuncParaInfo;
  const auto& parameters = numbers.paramInfo.uniformDisInfo;
  const bool two = numbers.funcType != ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
  const uint64_t element = ElementBytesOf(task.dataType);
  constexpr uint64_t kCounterBytes = 16;
  const MemoryUse found[kRandomUses] = {
      {0, reinterpret_cast<uint64_t>(task.randomResultAddr), ResultBytes(task), false, true},
      {0, reinterpret_cast<uint64_t>(task.randomCounterAddr), kCounterBytes, true, true},
      {0, AddressOf(task.randomSeed), 8, true, false},
      {0, AddressOf(task.randomNum), 8, true, false},
      {0, AddressOf(parameters.min), element, true, false},
      {0, two ? AddressOf(parameters.max) : 0, element, true, false},
  };
  for (int i = 0; i < kRandomUses; ++i) {
    uses[i] = found[i];
    uses[i].position = kFirstRandomUse + i;
  }
  return kRandomUses;
}

std::span<const HcclSendRecvItem> ItemsOf(const ArgumentRule& rule, uint64_t items,
                                          const uint64_t* values) {
  if (items == 0) return {};
  return {reinterpret_cast<const HcclSendRecvItem*>(items),
          static_cast<uint32_t>(values[rule.sizes[0]])};
}

uint64_t ElementBytesOf(HcclDataType type) {
  const meaning::HcclDtype* row = meaning::FindHcclDtype(type);
  return row == nullptr ? 1 : row->bytes;
}

// The end of the farthest of the blocks that the arrays name, in elements.
uint64_t EndOfBlocks(uint64_t counts, uint64_t places, uint32_t ranks) {
  if (counts == 0 || places == 0) return 0;
  const auto* count = reinterpret_cast<const uint64_t*>(counts);
  const auto* place = reinterpret_cast<const uint64_t*>(places);
  uint64_t end = 0;
  for (uint32_t i = 0; i < ranks; ++i) {
    if (count[i] != 0 && place[i] + count[i] > end) end = place[i] + count[i];
  }
  return end;
}

// The elements that this rank sends (its row of the matrix) or receives (its column).
uint64_t SumInMatrix(uint64_t matrix, uint64_t communicator, Role part) {
  if (matrix == 0) return 0;
  const auto* counts = reinterpret_cast<const uint64_t*>(matrix);
  const uint64_t ranks = RanksOf(communicator), own = RankIn(communicator);
  uint64_t sum = 0;
  for (uint64_t other = 0; other < ranks; ++other) {
    sum += counts[part == Role::kMatrixRow ? own * ranks + other : other * ranks + own];
  }
  return sum;
}

// The memory of one part of HcclBatchSendRecv. What is sent and what is received follow the
// arguments of the call as two lists.
MemoryUse UseOf(const HcclSendRecvItem& item) {
  namespace position = meaning::position::HcclBatchSendRecv;
  const bool sends = item.sendRecvType == HCCL_SEND;
  return {sends ? position::kSendBuf : position::kRecvBuf, reinterpret_cast<uint64_t>(item.buf),
          item.count * ElementBytesOf(item.dataType), sends, !sends};
}

bool IsMemory(Role role) {
  return role == Role::kRange || role == Role::kFixed || role == Role::kElements ||
         role == Role::kCounted || role == Role::kMatrixRow || role == Role::kMatrixColumn;
}

// Calls `action(use)` for the memory that the arguments name.
template <typename Action>
void ForEachNamed(const CallInfo& info, const uint64_t* values, const Action& action) {
  if (info.effect == Effect::kRandom) {
    const uint64_t task_info = values[info.positions[0]];
    MemoryUse uses[kRandomUses];
    const int count = task_info == 0 ? 0 : RandomUses(task_info, uses);
    for (int i = 0; i < count; ++i) action(uses[i]);
    return;
  }
  for (int i = 0; i < info.argument_count; ++i) {
    const ArgumentRule& rule = info.rules[i];
    if (rule.role == Role::kItems) {
      for (const HcclSendRecvItem& item : ItemsOf(rule, values[i], values)) action(UseOf(item));
    } else if (IsMemory(rule.role)) {
      action(MemoryUse{i, values[i], RangeBytes(rule, values), rule.read, rule.written});
    }
  }
}

// Calls `action(use, block, first, end)` for each use of a known block.
template <typename Action>
void ForEachUse(const CallInfo& info, const uint64_t* values, const Action& action) {
  ForEachNamed(info, values, [&](const MemoryUse& use) {
    Block block;
    if (!FindBlock(use.address, &block)) return;
    const uint64_t first = use.address - block.begin;
    const uint64_t room = block.bytes - first;
    action(use, block, first, first + (use.bytes < room ? use.bytes : room));
  });
}

}  // namespace

uint64_t RangeBytes(const ArgumentRule& rule, const uint64_t* values) {
  switch (rule.role) {
    case Role::kRange:
      return values[rule.sizes[0]];
    case Role::kWords:
      return 4 * values[rule.sizes[0]];
    case Role::kFixed:
      return static_cast<uint64_t>(rule.sizes[0]);
    case Role::kPlane: {
      const uint64_t height = values[rule.sizes[2]];
      return height == 0 ? 0 : (height - 1) * values[rule.sizes[0]] + values[rule.sizes[1]];
    }
    case Role::kElements: {
      const auto type = static_cast<HcclDataType>(values[rule.sizes[1]]);
      const uint32_t ranks = rule.sizes[2] < 0 ? 1 : RanksOf(values[rule.sizes[2]]);
      return values[rule.sizes[0]] * ElementBytesOf(type) * ranks;
    }
    case Role::kCounted: {
      const auto type = static_cast<HcclDataType>(values[rule.sizes[2]]);
      const uint32_t ranks = RanksOf(values[rule.sizes[3]]);
      return EndOfBlocks(values[rule.sizes[0]], values[rule.sizes[1]], ranks) *
             ElementBytesOf(type);
    }
    case Role::kMatrixRow:
    case Role::kMatrixColumn: {
      const auto type = static_cast<HcclDataType>(values[rule.sizes[1]]);
      return SumInMatrix(values[rule.sizes[0]], values[rule.sizes[2]], rule.role) *
             ElementBytesOf(type);
    }
    default:
      return UINT64_MAX;
  }
}

void KeepInputsOfWork(Thread& thread, const CallInfo& info, const uint64_t* values,
                      const OpenCall& open, uint64_t stream) {
  ForEachUse(info, values,
             [&](const MemoryUse& use, const Block& block, uint64_t first, uint64_t end) {
               if (!use.read) return;
               KeepUnknown(thread, open.call_id, stream, block.buffer_id, block.begin, first, end);
             });
}

void KeepWork(Thread& thread, const CallInfo& info, const uint64_t* values, const OpenCall& open,
              uint64_t stream, uint64_t model_id) {
  ForEachUse(
      info, values, [&](const MemoryUse& use, const Block& block, uint64_t first, uint64_t end) {
        if (model_id != 0) {
          const auto note = [&](CapturedUse captured) {
            NoteCaptured(model_id, block.buffer_id, block.begin, first, end, captured);
          };
          if (use.read) note(CapturedUse::kDeviceRead);
          if (use.written) note(CapturedUse::kWrite);
          return;
        }
        if (!use.written) return;
        MarkKnown(block.buffer_id, first, end);
        // Nobody can compute random numbers again but the device that drew them, nor what
        // other ranks gave.
        const bool given = info.effect == Effect::kRandom || info.effect == Effect::kCollective ||
                           info.effect == Effect::kMessage;
        const auto keep = given ? KeepRandom : KeepWritten;
        keep(thread, open.call_id, stream, use.position, block.buffer_id, block.begin, first, end,
             nullptr, 0);
      });
}

void EncodeRandomTask(Thread& thread, uint64_t task_info) {
  static_assert(sizeof(aclrtRandomNumTaskInfo) % sizeof(int64_t) == 0);
  constexpr uint32_t kWords = sizeof(aclrtRandomNumTaskInfo) / sizeof(int64_t);
  if (task_info == 0) {
    thread.signature.Add(ArgumentTag::kNone);
    return;
  }
  thread.signature.Add(ArgumentTag::kIntList);
  thread.signature.Add(kWords);
  thread.signature.Append(reinterpret_cast<const void*>(task_info), sizeof(aclrtRandomNumTaskInfo));
}

void EncodeRandomMemory(Thread& thread, uint64_t task_info) {
  MemoryUse uses[kRandomUses];
  const int count = task_info == 0 ? 0 : RandomUses(task_info, uses);
  for (int i = 0; i < kRandomUses; ++i) {
    if (i < count && EncodeMemory(thread, uses[i].address, uses[i].bytes)) continue;
    thread.signature.Add(ArgumentTag::kNone);
  }
}

void EncodeItems(Thread& thread, const ArgumentRule& rule, uint64_t items, const uint64_t* values) {
  const auto all = ItemsOf(rule, items, values);
  thread.signature.Add(ArgumentTag::kIntList);
  thread.signature.Add(static_cast<uint32_t>(meaning::kItemNumbers * all.size()));
  for (const HcclSendRecvItem& item : all) {
    const int64_t numbers[meaning::kItemNumbers] = {
        item.sendRecvType, static_cast<int64_t>(item.count), item.dataType, item.remoteRank};
    thread.signature.Append(numbers, sizeof(numbers));
  }
}

void EncodeItemMemory(Thread& thread, const ArgumentRule& rule, uint64_t items,
                      const uint64_t* values) {
  const auto all = ItemsOf(rule, items, values);
  for (const HcclSendRecvType way : {HCCL_SEND, HCCL_RECV}) {
    thread.signature.Add(ArgumentTag::kTensorList);
    thread.signature.Add(static_cast<uint32_t>(all.size()));
    for (const HcclSendRecvItem& item : all) {
      const MemoryUse use = UseOf(item);
      if (item.sendRecvType == way && EncodeMemory(thread, use.address, use.bytes)) continue;
      thread.signature.Add(ArgumentTag::kNone);
    }
  }
}

}  // namespace acltape::acl_agent
