// Random numbers by a task of the stream (RND-01 to RND-04), and new parameters for such a task of
// a built model (RND-05 to RND-07).
//
// The counter of the generator lies in device memory, and the task moves it past the blocks that
// it used. So equal seeds and counters give equal numbers, and tasks in a row give different ones.
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/call.h"
#include "runtime/device/distributions.h"
#include "runtime/device/memory.h"
#include "runtime/device/short_floats.h"

using acltape::Philox;
using namespace acltape::device;

namespace {

// More would overflow the number of bytes; no memory holds so many.
constexpr uint64_t kMostNumbers = uint64_t{1} << 40;

// The parameters of a distribution are passed as their bytes; a type has at most eight.
template <typename T>
T FromBytes(uint64_t bytes) {
  T value;
  std::memcpy(&value, &bytes, sizeof(T));
  return value;
}

struct Draw {
  const char* (*problem)(uint64_t first, uint64_t second);  // null: the parameters are right
  void (*fill)(uint64_t first, uint64_t second, Philox& generator, void* to, uint64_t count);
};

template <typename Distribution, typename T>
constexpr Draw DrawOf() {
  return {[](uint64_t first, uint64_t second) {
            return Distribution::Problem(FromBytes<T>(first), FromBytes<T>(second));
          },
          [](uint64_t first, uint64_t second, Philox& generator, void* to, uint64_t count) {
            Distribution::Fill(FromBytes<T>(first), FromBytes<T>(second), generator, to, count);
          }};
}

struct DistributionRow {
  const char* first;   // the names of its parameters
  const char* second;  // null: it has one
};

// By aclrtRandomNumFuncType.
constexpr DistributionRow kDistributions[] = {
    {"dropoutRation", nullptr}, {"min", "max"}, {"mean", "stddev"}, {"mean", "stddev"}};
constexpr size_t kDistributionCount = std::size(kDistributions);

struct TypeRow {
  aclDataType type;
  uint64_t bytes;
  Draw draws[kDistributionCount];  // by distribution; empty where it has no numbers of the type
};

template <typename T>
constexpr TypeRow Integers(aclDataType type) {
  return {type, sizeof(T), {{}, DrawOf<Uniform<T>, T>(), {}, {}}};
}

template <typename T>
constexpr TypeRow Floats(aclDataType type) {
  return {type,
          sizeof(T),
          {DrawOf<DropoutMask<T>, T>(), DrawOf<Uniform<T>, T>(), DrawOf<Normal<T>, T>(),
           DrawOf<TruncatedNormal<T>, T>()}};
}

constexpr TypeRow kTypes[] = {
    Floats<float>(ACL_FLOAT),       Floats<Half>(ACL_FLOAT16),    Floats<Bfloat16>(ACL_BF16),
    Integers<int32_t>(ACL_INT32),   Integers<int64_t>(ACL_INT64), Integers<uint32_t>(ACL_UINT32),
    Integers<uint64_t>(ACL_UINT64),
};

const TypeRow* FindType(aclDataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

void* AddressOf(const aclrtRandomParaInfo& parameter) {
  void* address = nullptr;
  std::memcpy(&address, parameter.valueOrAddr, sizeof(address));
  return address;
}

// The bytes of a parameter now. What a value does not say of them is 0.
uint64_t BytesOf(const aclrtRandomParaInfo& parameter, uint64_t bytes) {
  uint64_t value = 0;
  if (parameter.isAddr != 0) {
    std::memcpy(&value, AddressOf(parameter), bytes);
  } else {
    std::memcpy(&value, parameter.valueOrAddr, parameter.size);
  }
  return value;
}

// A parameter, and how to read it.
struct Parameter {
  const aclrtRandomParaInfo* info;
  uint64_t bytes;
  const char* name;
};

struct RandomTask {
  aclrtRandomNumTaskInfo info;
  const TypeRow* type;

  size_t distribution() const { return info.randomNumFuncParaInfo.funcType; }
  const Draw& draw() const { return type->draws[distribution()]; }
  uint64_t ResultBytes(uint64_t count) const {
    const bool bits = distribution() == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
    return bits ? (count + 7) / 8 : count * type->bytes;
  }

  Parameter Seed() const { return {&info.randomSeed, 8, "randomSeed"}; }
  Parameter Number() const { return {&info.randomNum, 8, "randomNum"}; }
  // The parameters of each distribution lie where those of the uniform one do.
  Parameter First() const {
    return {&info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min, type->bytes,
            kDistributions[distribution()].first};
  }
  // Its name is null where the distribution has one parameter.
  Parameter Second() const {
    return {&info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max, type->bytes,
            kDistributions[distribution()].second};
  }
};

uint64_t Read(const Parameter& parameter) {
  return parameter.name == nullptr ? 0 : BytesOf(*parameter.info, parameter.bytes);
}

aclError CheckMemoryOfTask(const void* address, uint64_t bytes, const char* name) {
  return CheckTaskMemory(address, bytes, ACL_ERROR_RT_AICORE_EXCEPTION, "random numbers", name);
}

aclError FailTask(const char* problem) {
  SetMessage((std::string("random numbers: ") + problem).c_str());
  return ACL_ERROR_RT_AICORE_EXCEPTION;
}

// The numbers that a task of the program draws. An update may change them while the model runs.
class SharedRandom {
 public:
  explicit SharedRandom(const RandomTask& task) : task_(task) {}
  RandomTask Now() const {
    std::lock_guard lock(mutex_);
    return task_;
  }
  // RND-06: all else stays.
  void Update(const aclrtRandomNumTaskInfo& info) {
    std::lock_guard lock(mutex_);
    task_.info.randomParaAddr = info.randomParaAddr;
    task_.info.randomResultAddr = info.randomResultAddr;
    task_.info.randomCounterAddr = info.randomCounterAddr;
    task_.info.randomSeed = info.randomSeed;
    task_.info.randomNum = info.randomNum;
  }

 private:
  mutable std::mutex mutex_;
  RandomTask task_;
};

using Random = std::shared_ptr<SharedRandom>;

// Parameters that lie in memory are known when the task runs, so all is checked again.
aclError RunRandom(void* argument) {
  const RandomTask task = (*static_cast<Random*>(argument))->Now();
  for (const Parameter& parameter : {task.Seed(), task.Number(), task.First(), task.Second()}) {
    if (parameter.name == nullptr || parameter.info->isAddr == 0) continue;
    ACLTAPE_RETURN_IF_FAILED(
        CheckMemoryOfTask(AddressOf(*parameter.info), parameter.bytes, parameter.name));
  }
  const uint64_t first = Read(task.First());
  const uint64_t second = Read(task.Second());
  const uint64_t count = Read(task.Number());
  if (count > kMostNumbers) return FailTask("randomNum is greater than 2^40");
  if (const char* problem = task.draw().problem(first, second)) return FailTask(problem);
  void* result = task.info.randomResultAddr;
  void* state = task.info.randomCounterAddr;
  ACLTAPE_RETURN_IF_FAILED(CheckMemoryOfTask(result, task.ResultBytes(count), "randomResultAddr"));
  Philox::Counter counter;
  ACLTAPE_RETURN_IF_FAILED(CheckMemoryOfTask(state, sizeof(counter), "randomCounterAddr"));
  std::memcpy(&counter, state, sizeof(counter));
  Philox generator(Read(task.Seed()), counter);
  task.draw().fill(first, second, generator, result, count);
  std::memcpy(state, &generator.counter(), sizeof(counter));
  return ACL_SUCCESS;
}

// RND-03: the size of a value is that of what it says, and the size of an address is at most eight.
std::string ProblemOf(const Parameter& parameter) {
  const aclrtRandomParaInfo& info = *parameter.info;
  if (info.isAddr > 1) {
    return std::string("isAddr of ") + parameter.name + " is " + std::to_string(info.isAddr) +
           ", not 0 or 1";
  }
  const uint64_t most = info.isAddr != 0 ? sizeof(void*) : parameter.bytes;
  if (info.size != 0 && info.size <= most) return "";
  return std::string("size of ") + parameter.name + " is " + std::to_string(info.size) +
         ", not 1 to " + std::to_string(most);
}

aclError CheckParameter(const Parameter& parameter, const char* call) {
  if (parameter.name == nullptr) return ACL_SUCCESS;
  const aclrtRandomParaInfo& info = *parameter.info;
  const std::string problem = ProblemOf(parameter);
  if (!problem.empty()) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s", call, problem.c_str());
  if (info.isAddr == 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(AddressOf(info), call, parameter.name));
  return CheckMemory(AddressOf(info), parameter.bytes, call, parameter.name);
}

// Checks those values of parameters that are known before the task runs.
aclError CheckValues(const RandomTask& task, const char* call) {
  uint64_t count = 0;
  if (task.info.randomNum.isAddr == 0) count = Read(task.Number());
  if (count > kMostNumbers) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: randomNum is greater than 2^40", call);
  }
  const bool second_is_known = task.Second().name == nullptr || task.Second().info->isAddr == 0;
  if (task.First().info->isAddr == 0 && second_is_known) {
    const char* problem = task.draw().problem(Read(task.First()), Read(task.Second()));
    if (problem != nullptr) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s", call, problem);
  }
  return CheckMemory(task.info.randomResultAddr, task.ResultBytes(count), call, "randomResultAddr");
}

aclError CheckRandomTask(const RandomTask& task, const char* call) {
  if (task.distribution() >= kDistributionCount) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no distribution %zu", call,
                task.distribution());
  }
  if (task.type == nullptr || task.draw().fill == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the distribution has no numbers of type %d", call,
                static_cast<int>(task.info.dataType));
  }
  for (const Parameter& parameter : {task.Seed(), task.Number(), task.First(), task.Second()}) {
    ACLTAPE_RETURN_IF_FAILED(CheckParameter(parameter, call));
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckMemory(task.info.randomCounterAddr, sizeof(Philox::Counter), call, "randomCounterAddr"));
  return CheckValues(task, call);
}

// An update that its stream has not reached.
struct RandomUpdate {
  Random random;
  const void* source;
};

// RND-06. What is written there is known when the update runs.
aclError RunUpdate(void* argument) {
  const auto& update = *static_cast<const RandomUpdate*>(argument);
  RandomTask task = update.random->Now();
  ACLTAPE_RETURN_IF_FAILED(CheckMemoryOfTask(update.source, sizeof(task.info), "srcAddr"));
  std::memcpy(&task.info, update.source, sizeof(task.info));
  for (const Parameter& parameter : {task.Seed(), task.Number()}) {
    const std::string problem = ProblemOf(parameter);
    if (!problem.empty()) return FailTask(problem.c_str());
  }
  update.random->Update(task.info);
  return ACL_SUCCESS;
}

// RND-05: the random task of a bound stream that the number names.
aclError FindRandom(const Stream& stream, uint32_t number, const char* call, Random* random) {
  std::lock_guard lock(CaptureLock());
  if (stream.built == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is not bound to a model", call,
                stream.id());
  }
  const auto& nodes = stream.built->nodes;
  if (number >= nodes.size() || nodes[number].member != stream.built_member) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: stream %u has no task %u", call, stream.id(),
                number);
  }
  const Task& task = nodes[number].task;
  if (task.run != RunRandom) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: task %u of stream %u is %s, which draws no numbers", call, number, stream.id(),
                task.name);
  }
  *random = *static_cast<const Random*>(task.argument);
  return ACL_SUCCESS;
}

// RND-07.
aclError CheckUpdate(const aclrtTaskUpdateInfo& info, const char* call) {
  if (info.id == ACL_RT_UPDATE_AIC_AIV_TASK) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: kernels of the cube and vector cores cannot run here", call);
  }
  if (info.id != ACL_RT_UPDATE_RANDOM_TASK) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no update %d", call,
                static_cast<int>(info.id));
  }
  const aclrtRandomTaskUpdateAttr& attribute = info.val.randomTaskAttr;
  if (attribute.srcAddr == nullptr || attribute.size != sizeof(aclrtRandomNumTaskInfo)) {
    return Fail(
        ACL_ERROR_RT_PARAM_INVALID,
        "%s: srcAddr %p and size %zu are not those of an aclrtRandomNumTaskInfo of %zu bytes", call,
        attribute.srcAddr, attribute.size, sizeof(aclrtRandomNumTaskInfo));
  }
  if (!IsDevice(FindMemory(attribute.srcAddr))) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: srcAddr %p is not device memory", call,
                attribute.srcAddr);
  }
  return CheckMemory(attribute.srcAddr, attribute.size, call, "srcAddr");
}

}  // namespace

aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo* taskInfo, const aclrtStream stream,
                             void* reserve) {
  ACLTAPE_CALL("aclrtRandomNumAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(taskInfo, kCall, "taskInfo"));
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: reserve is reserved and must be NULL", kCall);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(taskInfo->randomResultAddr, kCall, "randomResultAddr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(taskInfo->randomCounterAddr, kCall, "randomCounterAddr"));
  const RandomTask random{*taskInfo, FindType(taskInfo->dataType)};
  ACLTAPE_RETURN_IF_FAILED(CheckRandomTask(random, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  Task task;
  task.run = RunRandom;
  task.drop = [](void* argument) { delete static_cast<Random*>(argument); };
  task.argument = new Random(std::make_shared<SharedRandom>(random));
  task.name = "RANDOM_NUM";
  task.kind = TaskKind::kRandom;
  return SubmitTask(*found, std::move(task));
}

aclError aclrtTaskUpdateAsync(aclrtStream taskStream, uint32_t taskId, aclrtTaskUpdateInfo* info,
                              aclrtStream execStream) {
  ACLTAPE_CALL("aclrtTaskUpdateAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(info, kCall, "info"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(taskStream, kCall, "taskStream"));
  Stream* updated = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(taskStream, kCall, &updated));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(execStream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckUpdate(*info, kCall));
  Random random;
  ACLTAPE_RETURN_IF_FAILED(FindRandom(*updated, taskId, kCall, &random));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  Task task;
  task.run = RunUpdate;
  task.drop = [](void* argument) { delete static_cast<RandomUpdate*>(argument); };
  task.argument = new RandomUpdate{std::move(random), info->val.randomTaskAttr.srcAddr};
  task.name = "TASK_UPDATE";
  task.kind = TaskKind::kInternal;
  return SubmitTask(*found, std::move(task));
}
