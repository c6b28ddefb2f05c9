// The wrapper of an interface function: arguments as sixty-four bit values, the real call in
// between. What is known of each function is a row of kCalls, which acl/generate/wrappers.py makes
// of acl/data/acl_abi.json and acl/data/meaning.json.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "generated/meaning/interface_numbers.h"
#include "hccl/hccl_types.h"
#include "recorder/acl/real.h"
#include "recorder/agent/own_time.h"

namespace acltape::acl_agent {

// The form in which an argument is recorded.
enum class Role : uint8_t {
  kInt,       // the value
  kAddress,   // memory to the end of its block, or an address
  kRange,     // memory, as many bytes as argument sizes[0] says
  kWords,     // memory, as many words of four bytes as argument sizes[0] says
  kFixed,     // memory, sizes[0] bytes
  kPlane,     // memory, rows: arguments pitch, width, height
  kElements,  // memory, as many elements as sizes[0] says of the type that sizes[1] says; times
              // the ranks of the communicator at sizes[2], if there is one
  kCounted,   // memory, blocks of elements: their numbers, their places, the type, the communicator
  kMatrixRow,  // memory, what this rank sends by a matrix: the matrix, the type, the communicator
  kMatrixColumn,  // the same, what it receives
  kStream,        // NULL is the default stream (rule GEN-04)
  kStreamOrNone,  // NULL is none
  kOtherStream,   // not the one that the call works on; NULL is none
  kEvent,
  kModel,
  kCommunicator,
  kOutStream,         // created by the call
  kOutDefaultStream,  // asked for
  kOutEvent,
  kOutModel,
  kOut32,  // a number that the call wrote
  kOut64,
  kOutFloat,
  kExchanged,  // a 32 bit value before the call
  kText,
  kStruct,         // an address whose content is not kept
  kHandles,        // an array of handles, as many as argument sizes[0] says
  kCounts,         // an array of numbers, one for each rank of the communicator at sizes[0]
  kMatrix,         // an array of such arrays, one for each rank
  kItems,          // an array of HcclSendRecvItem, as many as argument sizes[0] says
  kConditionTask,  // aclmdlRICondTaskParams: its numbers and the sub-graphs
  kRandomTask,     // aclrtRandomNumTaskInfo: its words of eight bytes
};

struct ArgumentRule {
  Role role;
  bool read;
  bool written;
  int8_t sizes[4];
};

// The effect of a call on memory, handles or streams, which its arguments alone do not show.
enum class Effect : uint8_t {
  kNone,
  kCreate,        // a handle: its flags
  kDeviceBirth,   // memory: where its address is written, its size
  kHostBirth,     // pinned host memory: the same
  kHostRegister,  // pinned host memory: its address, its size
  kImport,        // memory of another process: where its address is written
  kShare,         // other processes may write to memory: its address
  kDeath,         // memory: its address
  kStreamEnd,
  kEventEnd,
  kModelEnd,
  kCaptureBegin,  // stream, mode
  kCaptureEnd,    // stream
  kGroupEnd,      // stream, where the group is written
  kUpdateBegin,   // stream, group
  kUpdateEnd,     // stream
  kCondition,     // the address to which the handle of a condition is written
  kSubGraphs,     // the parameters of a conditional task, stream
  kSubCaptureBegin,
  kBind,          // model, stream
  kUnbind,        // stream
  kExecute,       // model, stream
  kCopy,          // destination, source, bytes
  kCopy2d,        // destination, source, source pitch
  kFill,          // destination
  kMemoryWork,    // a stream reads and writes the memory of the arguments
  kRandom,        // the parameters of random numbers
  kCollective,    // the same as kMemoryWork, with data of other ranks
  kMessage,       // the same with one other rank; in a group it is part of a batch
  kDeviceChange,  // the thread's device may be another
  kDeviceEnd,     // objects of the device end
  kWork,          // work on a stream, with no effect of those above
  kWait,          // the host waits for work
  kCallsBack,     // functions of the program run inside
  kExchange,      // the 32 bit value it exchanges
};

struct CallInfo {
  const char* name;
  const char* schema;
  uint8_t dialect;  // as in wire::OpRecord
  uint8_t argument_count;
  int8_t stream;  // position of its stream, -1: none
  Effect effect;
  int8_t positions[3];  // positions of the arguments that the effect needs
  // Recorded also while recording is closed: it sets something up that a later window may need,
  // such as a device, a capture or an attribute of a stream.
  bool lasting;
  // The thread may wait for the interpreter's lock to read the line of the program. Copies, waits
  // for a stream and the ends of a capture are what an operator or the program itself does, never
  // an allocator; see Note [Taking the interpreter's lock].
  bool takes_lock;
  bool stream_works;  // on what the call asks for. Without a stream the host waits for it.
  const ArgumentRule* rules;
};

extern const CallInfo kCalls[];
extern const uint32_t kCallCount;
extern void* const kCallWrappers[];

// A call on its way; lives in the wrapper's frame.
struct OpenCall {
  void* thread;  // null: not recorded
  uint64_t call_id;
  uint64_t outer_call;
  uint64_t begin_tick;
  uint64_t stream_id;
  uint64_t model_handle;  // the model that a capture makes, if the call ends one
  uint64_t ended_id;      // stream, event or model that the call ends
  uint64_t freed_block;   // buffer that the call frees
  uint64_t freed_bytes;
  uint64_t freed_begin;
  uint32_t exchanged;
  uint32_t freed_device;
  uint32_t place_id;  // line of source, 0: unknown
  bool muted;         // only identities are kept of it, see NoticeWindow
  bool gathered;      // a message of a group, which is recorded at the group's end if it succeeds
  void* device_task;  // a DeviceTask, null: none (device_times.h)
  agent::TimedHook hook;
};

// False: pass the call on and record nothing. `caller` is the address to which the call returns.
bool BeginCall(uint32_t call, const uint64_t* values, const void* caller, OpenCall* open);
void EndCall(uint32_t call, const uint64_t* values, OpenCall* open, int32_t status);
// Records in the ledger that the program called a function that no library of the process has.
void RecordMissingFunction(uint32_t call);

template <typename T>
uint64_t Bits(const T& value) {
  uint64_t bits = 0;
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  } else if constexpr (sizeof(T) <= sizeof(bits) && std::is_trivially_copyable_v<T>) {
    std::memcpy(&bits, &value, sizeof(T));
  } else {
    bits = reinterpret_cast<uint64_t>(&value);  // a struct that is passed by value
  }
  return bits;
}

template <typename R, uint32_t Call, typename... Arguments>
__attribute__((always_inline)) inline R Interface(Arguments... arguments) {
  using Function = R (*)(Arguments...);
  auto real = reinterpret_cast<Function>(Real(Call));
  if (__builtin_expect(real == nullptr, 0)) {
    RecordMissingFunction(Call);
    if constexpr (std::is_same_v<R, void>) {
      return;
    } else if constexpr (std::is_same_v<R, int>) {
      return meaning::kAclErrorRtFeatureNotSupport;  // rule GEN-08
    } else if constexpr (std::is_same_v<R, HcclResult>) {
      return HCCL_E_NOT_SUPPORT;
    } else {
      return R{};
    }
  }
  const uint64_t values[sizeof...(Arguments) + 1] = {Bits(arguments)...};
  OpenCall open;
  // Inlined, so that this is the address to which the wrapper returns.
  const void* caller = __builtin_return_address(0);
  if (!BeginCall(Call, values, caller, &open)) return real(arguments...);
  if constexpr (std::is_same_v<R, void>) {
    real(arguments...);
    EndCall(Call, values, &open, 0);
  } else {
    const R result = real(arguments...);
    constexpr bool kIsStatus = std::is_same_v<R, int> || std::is_same_v<R, HcclResult>;
    EndCall(Call, values, &open, kIsStatus ? static_cast<int32_t>(Bits(result)) : 0);
    return result;
  }
}

}  // namespace acltape::acl_agent
