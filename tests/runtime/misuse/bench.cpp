#include "tests/runtime/misuse/bench.h"

#include <fnmatch.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "acl/acl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_memory_soma.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "aclnn/acl_meta.h"
#include "runtime/kernel_launch.h"

namespace acltape::misuse {
namespace {

constexpr size_t kBytes = 4096;
constexpr size_t kGranularity = size_t{2} << 20;

Argument At(const void* pointer) { return reinterpret_cast<Argument>(pointer); }

void Need(int64_t code) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error("preparing: " + std::to_string(code) + " " + (text ? text : ""));
}

// Makes an object by a function whose first parameter is the output.
template <auto Create, typename Handle, auto... Further>
Argument Made() {
  Handle handle = nullptr;
  Need(Create(&handle, Further...));
  return At(handle);
}

template <auto End, typename Handle>
void Ended(Argument handle) {
  End(reinterpret_cast<Handle>(handle));
}

aclrtStream NewStream() {
  aclrtStream stream = nullptr;
  Need(aclrtCreateStream(&stream));
  return stream;
}

aclError RunNothing(void*) { return 0; }
void DoNothing(void*) {}

// Memory for outputs, structures and texts; zeros.
void* Scratch() { return std::calloc(1, kBytes); }

void* DeviceMemory() {
  void* memory = nullptr;
  Need(aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  Need(aclrtMemset(memory, kBytes, 0, kBytes));
  return memory;
}

void* PinnedMemory() {
  void* memory = nullptr;
  Need(aclrtMallocHost(&memory, kBytes));
  return memory;
}

aclrtStream CapturingStream() {
  aclrtStream stream = NewStream();
  Need(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  return stream;
}

aclmdlRI ModelBeingCaptured() {
  aclmdlRICaptureStatus status;
  aclmdlRI model = nullptr;
  Need(aclmdlRICaptureGetInfo(CapturingStream(), &status, &model));
  return model;
}

// One kernel, in a group of its own.
struct Captured {
  aclrtStream stream;
  aclmdlRI model;
  aclrtTaskGrp group;
};

Captured Capture() {
  Captured made{CapturingStream(), nullptr, nullptr};
  Need(SoftLaunchKernelWithArgs(made.stream, "kernel", RunNothing, "argument", 8));
  Need(aclmdlRICaptureTaskGrpBegin(made.stream));
  Need(SoftLaunchKernelWithArgs(made.stream, "kernel", RunNothing, "argument", 8));
  Need(aclmdlRICaptureTaskGrpEnd(made.stream, &made.group));
  Need(aclmdlRICaptureEnd(made.stream, &made.model));
  return made;
}

Argument CapturedModel() { return At(Capture().model); }
Argument TaskGroup() { return At(Capture().group); }

aclrtStream HiddenStream(aclmdlRI model) {
  uint32_t count = 1;
  aclrtStream stream = nullptr;
  Need(aclmdlRIGetStreams(model, &stream, &count));
  return stream;
}

aclmdlRITask FirstTask(aclmdlRI model) {
  uint32_t count = 0;
  const aclrtStream stream = HiddenStream(model);
  Need(aclmdlRIGetTasksByStream(stream, nullptr, &count));
  std::vector<aclmdlRITask> tasks(count);
  Need(aclmdlRIGetTasksByStream(stream, tasks.data(), &count));
  return tasks.front();
}

// The newest model that tasks, groups and conditions were made of: they end with it.
aclmdlRI owner = nullptr;

Argument ModelTask() {
  owner = Capture().model;
  return At(FirstTask(owner));
}

Argument OwnedGroup() {
  const Captured made = Capture();
  owner = made.model;
  return At(made.group);
}

void EndOwner(Argument) { aclmdlRIDestroy(owner); }

aclrtStream condition_stream = nullptr;

Argument Condition() {
  condition_stream = CapturingStream();
  aclmdlRICaptureStatus status;
  Need(aclmdlRICaptureGetInfo(condition_stream, &status, &owner));
  aclmdlRICondHandle handle = nullptr;
  Need(aclmdlRICondHandleCreate(owner, 0, static_cast<aclmdlRICondHandleFlag>(0), &handle));
  return At(handle);
}

// A capture that ends destroys a model which nobody wants.
void EndCondition(Argument) {
  aclmdlRI model = nullptr;
  aclmdlRICaptureEnd(condition_stream, &model);
  aclmdlRIDestroy(model);
}

Argument FunctionHandle() {
  aclmdlRITaskParams params = {};
  Need(aclmdlRITaskGetParams(reinterpret_cast<aclmdlRITask>(ModelTask()), &params));
  return At(params.kernelTaskParams.funcHandle);
}

Argument OldEvent() {
  aclrtEvent event = nullptr;
  Need(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  return At(event);
}

Argument RecordedEvent() {
  aclrtEvent event = nullptr;
  Need(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  const aclrtStream stream = NewStream();
  Need(aclrtRecordEvent(event, stream));
  Need(aclrtSynchronizeStream(stream));
  return At(event);
}

Argument IpcEvent() { return Made<aclrtCreateEventExWithFlag, aclrtEvent, ACL_EVENT_IPC>(); }

Argument LabelList() {
  aclrtLabel label = nullptr;
  aclrtLabelList list = nullptr;
  Need(aclrtCreateLabel(&label));
  Need(aclrtCreateLabelList(&label, 1, &list));
  return At(list);
}

Argument Physical() {
  aclrtPhysicalMemProp prop = {};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  aclrtDrvMemHandle handle = nullptr;
  Need(aclrtMallocPhysical(&handle, kGranularity, &prop, 0));
  return At(handle);
}

Argument PoolProperties() {
  auto* properties = static_cast<aclrtMemPoolProps*>(Scratch());
  properties->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  properties->maxSize = 4 * kGranularity;
  return At(properties);
}

Argument MemoryPool() {
  aclrtMemPool pool = nullptr;
  Need(aclrtMemPoolCreate(&pool, reinterpret_cast<aclrtMemPoolProps*>(PoolProperties())));
  return At(pool);
}

Argument MemoryOfAPool() {
  void* memory = nullptr;
  Need(aclrtMemPoolMallocAsync(&memory, kBytes, reinterpret_cast<aclrtMemPool>(MemoryPool()),
                               NewStream()));
  return At(memory);
}

void* Reserved() {
  void* address = nullptr;
  Need(aclrtReserveMemAddress(&address, kGranularity, 0, nullptr, 0));
  return address;
}

void* Mapped() {
  void* address = Reserved();
  Need(aclrtMapMem(address, kGranularity, 0, reinterpret_cast<void*>(Physical()), 0));
  return address;
}

// Keys of memory and of a notify of this process, and a shareable handle.
Argument MemoryKey() {
  auto* key = static_cast<char*>(Scratch());
  Need(aclrtIpcMemGetExportKey(DeviceMemory(), kBytes, key, 65, 1));
  return At(key);
}

Argument NotifyKey() {
  auto* key = static_cast<char*>(Scratch());
  aclrtNotify notify = nullptr;
  Need(aclrtCreateNotify(&notify, 0));
  Need(aclrtNotifyGetExportKey(notify, key, 65, 2));
  return At(key);
}

Argument ExportedNotify() {
  char key[65];
  aclrtNotify notify = nullptr;
  Need(aclrtCreateNotify(&notify, 0));
  Need(aclrtNotifyGetExportKey(notify, key, 65, 0));
  return At(notify);
}

Argument ShareableHandle() {
  uint64_t handle = 0;
  Need(aclrtMemExportToShareableHandle(reinterpret_cast<void*>(Physical()),
                                       ACL_MEM_HANDLE_TYPE_NONE, 1, &handle));
  return handle;
}

// The host's kernels (tests/runtime/host_kernels.c), and one of them.
aclrtBinHandle HostBinary() {
  aclrtBinHandle binary = nullptr;
  Need(aclrtBinaryLoadFromFile(ACLTAPE_HOST_KERNELS "/host_kernels.json", nullptr, &binary));
  return binary;
}

// A library in memory, of which nothing is registered.
Argument DataBinary() {
  std::ifstream file(ACLTAPE_HOST_KERNELS "/host_kernels.so", std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  aclrtBinaryLoadOption option{};
  option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
  option.value.cpuKernelMode = 2;
  const aclrtBinaryLoadOptions options{&option, 1};
  aclrtBinHandle binary = nullptr;
  Need(aclrtBinaryLoadFromData(image.data(), image.size(), &options, &binary));
  return At(binary);
}

Argument HostKernel() {
  static aclrtFuncHandle kernel = nullptr;  // lists belong to one kernel
  if (kernel == nullptr) Need(aclrtBinaryGetFunction(HostBinary(), "Broken", &kernel));
  return At(kernel);
}

// A list with a value and a placeholder; its parameters are the handles 1 and 2.
Argument ArgumentList(bool finalized) {
  aclrtArgsHandle args = nullptr;
  aclrtParamHandle parameter = nullptr;
  int64_t value = 0;
  Need(aclrtKernelArgsInit(reinterpret_cast<aclrtFuncHandle>(HostKernel()), &args));
  Need(aclrtKernelArgsAppend(args, &value, sizeof(value), &parameter));
  Need(aclrtKernelArgsAppendPlaceHolder(args, &parameter));
  if (finalized) Need(aclrtKernelArgsFinalize(args));
  return At(args);
}

// Device memory that holds the address of device memory.
Argument PlaceOfAddress() {
  void* place = DeviceMemory();
  void* address = DeviceMemory();
  Need(aclrtMemcpy(place, 8, &address, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  return At(place);
}

constexpr int64_t kFour = 4;

aclTensor* Tensor() {
  return aclCreateTensor(&kFour, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &kFour, 1,
                         DeviceMemory());
}

aclScalar* Scalar() {
  float one = 1;
  return aclCreateScalar(&one, ACL_FLOAT);
}

aclTensorList* TensorList() {
  const aclTensor* tensor = Tensor();
  return aclCreateTensorList(&tensor, 1);
}

aclScalarList* ScalarList() {
  const aclScalar* scalar = Scalar();
  return aclCreateScalarList(&scalar, 1);
}

acltdtDataItem* DataItem() {
  return acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &kFour, 1, ACL_FLOAT, Scratch(), 16);
}

// With one item.
acltdtDataset* Dataset() {
  acltdtDataset* dataset = acltdtCreateDataset();
  Need(acltdtAddDataItem(dataset, DataItem()));
  return dataset;
}

// With one message in it.
acltdtChannelHandle* Channel() {
  static int made = 0;
  const std::string name = "channel " + std::to_string(made++);
  acltdtChannelHandle* channel = acltdtCreateChannelWithCapacity(0, name.c_str(), 4);
  Need(acltdtSendTensor(channel, Dataset(), 0));
  return channel;
}

// With one message in it.
uint32_t QueueNumber() {
  uint32_t queue = 0;
  Need(acltdtCreateQueue(nullptr, &queue));
  Need(acltdtEnqueueData(queue, Scratch(), 16, nullptr, 0, 0, 0));
  return queue;
}

// With one route between two queues.
acltdtQueueRouteList* RouteList() {
  acltdtQueueRouteList* list = acltdtCreateQueueRouteList();
  Need(acltdtAddQueueRoute(list, acltdtCreateQueueRoute(QueueNumber(), QueueNumber())));
  return list;
}

acltdtQueueRouteList* BoundRoutes() {
  acltdtQueueRouteList* list = RouteList();
  Need(acltdtBindQueueRoutes(list));
  return list;
}

acltdtQueueRouteQueryInfo* RouteQuery() {
  acltdtQueueRouteQueryInfo* info = acltdtCreateQueueRouteQueryInfo();
  const int32_t mode = ACL_TDT_QUEUE_ROUTE_QUERY_SRC;
  const uint32_t queue = 0;
  Need(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode));
  Need(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, 4, &queue));
  return info;
}

// A file without a name, which ends with the process.
const char* DumpConfiguration() {
  const int file = memfd_create("dump.json", 0);
  const std::string text = R"({"dump": {"dump_list": [], "dump_path": "/tmp"}})";
  if (write(file, text.data(), text.size()) < 0) throw std::runtime_error("no configuration");
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  Need(aclmdlInitDump());
  return path.c_str();
}

int32_t TakeChunk(const acldumpChunk*, int32_t) { return 0; }
aclError OnInit(const char*, size_t, void*) { return 0; }
aclError OnFinalize(void*) { return 0; }

// Types without `end` have none of their own.
const HandleType kHandleTypes[] = {
    {"aclrtStream", [] { return At(NewStream()); }, Ended<aclrtDestroyStream, aclrtStream>},
    {"aclrtEvent", RecordedEvent, Ended<aclrtDestroyEvent, aclrtEvent>},
    {"aclmdlRI", CapturedModel, Ended<aclmdlRIDestroy, aclmdlRI>},
    {"aclmdlRITask", ModelTask, EndOwner},
    {"aclrtTaskGrp", OwnedGroup, EndOwner},
    {"aclmdlRICondHandle", Condition, EndCondition},
    {"aclrtFuncHandle", FunctionHandle, nullptr},
    {"aclrtBinHandle", [] { return At(HostBinary()); }, Ended<aclrtBinaryUnLoad, aclrtBinHandle>},
    {"aclrtBinary", [] { return At(aclrtCreateBinary(PinnedMemory(), kBytes)); },
     Ended<aclrtDestroyBinary, aclrtBinary>},
    {"aclrtArgsHandle", [] { return ArgumentList(false); }, nullptr},
    {"aclrtContext", [] { return Made<aclrtCreateContext, aclrtContext, 0>(); },
     Ended<aclrtDestroyContext, aclrtContext>},
    {"aclrtNotify", [] { return Made<aclrtCreateNotify, aclrtNotify, 0>(); },
     Ended<aclrtDestroyNotify, aclrtNotify>},
    {"aclrtCntNotify", [] { return Made<aclrtCntNotifyCreate, aclrtCntNotify, 0>(); },
     Ended<aclrtCntNotifyDestroy, aclrtCntNotify>},
    {"aclrtLabel", [] { return Made<aclrtCreateLabel, aclrtLabel>(); },
     Ended<aclrtDestroyLabel, aclrtLabel>},
    {"aclrtLabelList", LabelList, Ended<aclrtDestroyLabelList, aclrtLabelList>},
    {"aclrtDrvMemHandle", Physical, Ended<aclrtFreePhysical, aclrtDrvMemHandle>},
    {"aclrtMemPool", MemoryPool, Ended<aclrtMemPoolDestroy, aclrtMemPool>},
    {"aclrtAllocatorDesc", [] { return At(aclrtAllocatorCreateDesc()); },
     Ended<aclrtAllocatorDestroyDesc, aclrtAllocatorDesc>},
    {"aclrtStreamConfigHandle*", [] { return At(aclrtCreateStreamConfigHandle()); },
     Ended<aclrtDestroyStreamConfigHandle, aclrtStreamConfigHandle*>},
    {"aclDataBuffer*", [] { return At(aclCreateDataBuffer(DeviceMemory(), kBytes)); },
     Ended<aclDestroyDataBuffer, aclDataBuffer*>},
    {"aclTensorDesc*", [] { return At(aclCreateTensorDesc(ACL_FLOAT, 1, &kFour, ACL_FORMAT_ND)); },
     Ended<aclDestroyTensorDesc, aclTensorDesc*>},
    {"aclopAttr*", [] { return At(aclopCreateAttr()); }, Ended<aclopDestroyAttr, aclopAttr*>},
    {"aclprofConfig*",
     [] { return At(aclprofCreateConfig(nullptr, 0, ACL_AICORE_NONE, nullptr, 0)); },
     Ended<aclprofDestroyConfig, aclprofConfig*>},
    {"aclprofStepInfo*", [] { return At(aclprofCreateStepInfo()); },
     Ended<aclprofDestroyStepInfo, aclprofStepInfo*>},
    {"aclprofSubscribeConfig*",
     [] { return At(aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, Scratch())); },
     Ended<aclprofDestroySubscribeConfig, aclprofSubscribeConfig*>},
    {"acltdtDataItem*", [] { return At(DataItem()); },
     Ended<acltdtDestroyDataItem, acltdtDataItem*>},
    {"acltdtDataset*", [] { return At(Dataset()); }, Ended<acltdtDestroyDataset, acltdtDataset*>},
    {"acltdtChannelHandle*", [] { return At(Channel()); },
     Ended<acltdtDestroyChannel, acltdtChannelHandle*>},
    {"acltdtQueueAttr*", [] { return At(acltdtCreateQueueAttr()); },
     Ended<acltdtDestroyQueueAttr, acltdtQueueAttr*>},
    {"acltdtQueueRoute*", [] { return At(acltdtCreateQueueRoute(0, 1)); },
     Ended<acltdtDestroyQueueRoute, acltdtQueueRoute*>},
    {"acltdtQueueRouteList*", [] { return At(RouteList()); },
     Ended<acltdtDestroyQueueRouteList, acltdtQueueRouteList*>},
    {"acltdtQueueRouteQueryInfo*", [] { return At(RouteQuery()); },
     Ended<acltdtDestroyQueueRouteQueryInfo, acltdtQueueRouteQueryInfo*>},
    {"aclTensor*", [] { return At(Tensor()); }, Ended<aclDestroyTensor, aclTensor*>},
    {"aclScalar*", [] { return At(Scalar()); }, Ended<aclDestroyScalar, aclScalar*>},
    {"aclIntArray*", [] { return At(aclCreateIntArray(&kFour, 1)); },
     Ended<aclDestroyIntArray, aclIntArray*>},
    {"aclFloatArray*", [] { return At(aclCreateFloatArray(static_cast<float*>(Scratch()), 1)); },
     Ended<aclDestroyFloatArray, aclFloatArray*>},
    {"aclBoolArray*", [] { return At(aclCreateBoolArray(static_cast<bool*>(Scratch()), 1)); },
     Ended<aclDestroyBoolArray, aclBoolArray*>},
    {"aclTensorList*", [] { return At(TensorList()); },
     Ended<aclDestroyTensorList, aclTensorList*>},
    {"aclScalarList*", [] { return At(ScalarList()); },
     Ended<aclDestroyScalarList, aclScalarList*>},
    // An executor needs an operator, and operators need libopapi.so: misuse of executors that were
    // launched is tested in tests/opapi. Here no executor is ever live.
    {"aclOpExecutor*", nullptr, nullptr},
    // Only a callback that runs has one.
    {"aclrtExceptionInfo*", nullptr, nullptr},
};

// An array with one element.
template <typename Element>
Argument One(Element element) {
  auto* array = static_cast<Element*>(Scratch());
  *array = element;
  return At(array);
}

Argument Text(const char* text) { return At(text); }

Argument SubGraph() {
  Condition();  // makes `owner` a model that is being captured
  static aclmdlRI sub = nullptr;
  aclmdlRICondTaskParams params = {};
  Need(aclmdlRICondHandleCreate(owner, 0, static_cast<aclmdlRICondHandleFlag>(0), &params.handle));
  params.size = 1;
  params.modelRIArray = &sub;
  Need(aclmdlRIAddCondTask(params, condition_stream, 0));
  return At(sub);
}

// A built model whose only stream is bound, and that stream.
aclrtStream bound_stream = nullptr;
aclrtStream bound_other = nullptr;

Argument BuiltModel() {
  aclmdlRI model = nullptr;
  Need(aclmdlRIBuildBegin(&model, 0));
  Need(aclrtCreateStreamWithConfig(&bound_stream, 0, ACL_STREAM_PERSISTENT));
  Need(aclrtCreateStreamWithConfig(&bound_other, 0, ACL_STREAM_PERSISTENT));
  Need(aclmdlRIBindStream(model, bound_stream, 0));
  Need(aclmdlRIBindStream(model, bound_other, 0x7FFFFFFF));
  return At(model);
}

Argument EmptyBuiltModel() { return Made<aclmdlRIBuildBegin, aclmdlRI, 0>(); }

Argument FinishedModel(bool closed) {
  const auto model = reinterpret_cast<aclmdlRI>(BuiltModel());
  Need(aclmdlRIUnbindStream(model, bound_other));
  Need(aclmdlRIEndTask(model, bound_stream));
  if (closed) Need(aclmdlRIBuildEnd(model, nullptr));
  return At(model);
}

Argument BoundStream() {
  if (bound_stream == nullptr) BuiltModel();
  return At(bound_stream);
}

Argument SubscribedStream() {
  const aclrtStream stream = NewStream();
  Need(aclrtSubscribeReport(pthread_self(), stream));
  return At(stream);
}

aclrtStream GroupStream() {
  const aclrtStream stream = CapturingStream();
  Need(aclmdlRICaptureTaskGrpBegin(stream));
  return stream;
}

aclrtStream UpdatingStream() {
  const aclrtStream stream = NewStream();
  Need(aclmdlRICaptureTaskUpdateBegin(stream, reinterpret_cast<aclrtTaskGrp>(TaskGroup())));
  Need(SoftLaunchKernelWithArgs(stream, "kernel", RunNothing, "argument", 8));
  return stream;
}

Argument AllocatorStream() {
  const aclrtStream stream = NewStream();
  Need(aclrtAllocatorRegister(stream, aclrtAllocatorCreateDesc()));
  return At(stream);
}

Argument RegisteredMemory() {
  void* memory = std::aligned_alloc(4096, kBytes);
  Need(aclrtHostRegisterV2(memory, kBytes, 0));
  return At(memory);
}

// A kernel's parameters as they are.
Argument TaskParams() {
  auto* params = static_cast<aclmdlRITaskParams*>(Scratch());
  Need(aclmdlRITaskGetParams(reinterpret_cast<aclmdlRITask>(ModelTask()), params));
  return At(params);
}

// A task that draws one number from 0 to below 1.
Argument RandomNumbers() {
  auto* info = static_cast<aclrtRandomNumTaskInfo*>(Scratch());
  info->dataType = ACL_FLOAT;
  info->randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
  auto& limits = info->randomNumFuncParaInfo.paramInfo.uniformDisInfo;
  const float one = 1;
  std::memcpy(limits.max.valueOrAddr, &one, sizeof(one));
  limits.min.size = limits.max.size = sizeof(one);
  info->randomResultAddr = DeviceMemory();
  info->randomCounterAddr = DeviceMemory();
  info->randomNum.valueOrAddr[0] = 1;
  info->randomSeed.size = info->randomNum.size = 8;
  return At(info);
}

// A task of a bound stream that draws a number, and other parameters for it.
uint32_t RandomTaskOfModel() {
  uint32_t number = 0;
  BoundStream();
  Need(aclrtRandomNumAsync(reinterpret_cast<aclrtRandomNumTaskInfo*>(RandomNumbers()), bound_stream,
                           nullptr));
  Need(aclrtGetThreadLastTaskId(&number));
  return number;
}

Argument RandomUpdate() {
  auto* update = static_cast<aclrtTaskUpdateInfo*>(Scratch());
  update->id = ACL_RT_UPDATE_RANDOM_TASK;
  auto& attribute = update->val.randomTaskAttr;
  attribute.srcAddr = DeviceMemory();
  attribute.size = sizeof(aclrtRandomNumTaskInfo);
  std::memcpy(attribute.srcAddr, reinterpret_cast<void*>(RandomNumbers()), attribute.size);
  return At(update);
}

struct Right {
  const char* function;   // "" for every one; a final * stands for any rest
  const char* parameter;  // "" for every one
  const char* type;       // "" for every one
  Argument (*make)();
};

template <uint64_t N>
Argument Number() {
  return N;
}

// The first row that fits gives the argument. Rows of single functions come first, then those of
// names, then those of types. Handle types come last.
const Right kRight[] = {
    {"aclInit", "configPath", "", [] { return Text(""); }},
    {"aclAppLog", "logLevel", "", Number<0>},
    {"aclmdlSetDump", "dumpCfgPath", "", [] { return Text(DumpConfiguration()); }},
    {"acldumpRegCallback", "flag", "", Number<0>},
    {"acldumpSaveExceptionInfo", "tensors", "", [] { return At(Scratch()); }},
    {"acldumpSaveExceptionInfo", "tensorCount", "", Number<1>},
    {"aclop*DumpArgs", "dumpType", "", Number<1>},
    {"aclopStartDumpArgs", "path", "", [] { return Text("/tmp"); }},
    {"acltdtCreateDataItem", "dimNum", "", Number<1>},
    {"acltdtCreateDataItem", "data", "", [] { return At(Scratch()); }},
    {"acltdtGetDimsFromItem", "dims", "", [] { return At(Scratch()); }},
    {"acltdtReceiveTensor", "dataset", "", [] { return At(acltdtCreateDataset()); }},
    {"acltdtCreateChannel*", "name", "", [] { return Text("channel"); }},
    {"acltdt*", "qid", "uint32_t", [] { return Argument{QueueNumber()}; }},
    {"acltdt*queueData", "userDataSize", "", Number<0>},
    {"acltdtEnqueueData", "rsv", "", Number<0>},
    {"acltdtSetQueueAttr", "type", "", Number<ACL_TDT_QUEUE_DEPTH_UINT32>},
    {"acltdtSetQueueAttr", "len", "", Number<4>},
    {"acltdtSetQueueAttr", "param", "", [] { return One(uint32_t{4}); }},
    {"acltdtGetQueue*", "param", "", [] { return At(Scratch()); }},
    {"acltdtSetQueueRouteQueryInfo", "type", "", Number<ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32>},
    {"acltdtSetQueueRouteQueryInfo", "len", "", Number<4>},
    {"acltdtSetQueueRouteQueryInfo", "value", "", [] { return At(Scratch()); }},
    {"acltdtUnbindQueueRoutes", "qRouteList", "", [] { return At(BoundRoutes()); }},
    {"aclplatformGetInstructionInfo", "instruction", "", [] { return Text("Intrinsic_vadd"); }},
    {"aclprofCreateSubscribeConfig", "timeInfoSwitch", "", Number<1>},
    {"aclprofModelUnSubscribe", "modelId", "",
     [] {
       Need(aclprofModelSubscribe(7, aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, Scratch())));
       return Argument{7};
     }},
    {"aclrtProfTrace", "length", "", Number<18>},
    {"aclInitCallbackUnRegister", "cbFunc", "",
     [] {
       Need(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, OnInit, nullptr));
       return At(reinterpret_cast<void*>(OnInit));
     }},
    {"aclFinalizeCallbackUnRegister", "cbFunc", "",
     [] {
       Need(aclFinalizeCallbackRegister(ACL_REG_TYPE_ACL_MODEL, OnFinalize, nullptr));
       return At(reinterpret_cast<void*>(OnFinalize));
     }},
    {"aclsysGetVersion*", "pkgName", "", [] { return Text("runtime"); }},
    {"aclGetCannAttribute", "cannAttr", "", Number<ACL_CANN_ATTR_INF_NAN>},
    {"aclGetDeviceCapability", "deviceInfo", "", Number<ACL_DEVICE_INFO_AI_CORE_NUM>},
    {"aclrtGetDeviceInfo", "attr", "", Number<ACL_DEV_ATTR_CUBE_CORE_NUM>},
    {"aclrtGetDeviceCapability", "devFeatureType", "",
     Number<ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV>},
    {"aclrtCheckArchCompatibility", "socVersion", "", [] { return Text("Ascend910B1"); }},
    {"aclrtSetDeviceSatMode", "mode", "", Number<ACL_RT_OVERFLOW_MODE_INFNAN>},
    {"aclrtReduceAsync", "kind", "", Number<ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM>},
    {"aclrtReduceAsync", "reserve", "", Number<0>},
    {"aclrtRandomNumAsync", "taskInfo", "", RandomNumbers},
    {"aclrtRandomNumAsync", "reserve", "", Number<0>},
    {"aclrtMemP2PMap", "dstDevId", "", Number<0>},
    {"aclrtMemAllocManaged", "flag", "", Number<1>},
    {"aclrtMemManaged*", "location", "", [] { return At(Scratch()); }},
    {"aclrtMemManaged*", "attribute", "", Number<ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY>},
    {"aclrtMemManaged*", "advise", "", Number<ACL_MEM_ADVISE_SET_READ_MOSTLY>},
    {"aclrtCacheLastTaskExtendInfo", "extendInfoPtr", "",
     [] {
       RandomTaskOfModel();
       return Text("text");
     }},
    {"aclrtCacheLastTaskExtendInfo", "infoSize", "", Number<4>},
    {"aclrtTaskUpdateAsync", "taskStream", "", BoundStream},
    {"aclrtTaskUpdateAsync", "taskId", "", [] { return Argument{RandomTaskOfModel()}; }},
    {"aclrtTaskUpdateAsync", "info", "", RandomUpdate},
    {"aclrtMemPoolCreate", "poolProps", "", PoolProperties},
    {"aclrtMemPool*", "attr", "", Number<ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD>},
    {"aclrtMemPool*", "value", "", [] { return At(Scratch()); }},
    {"aclrtMemPoolFreeAsync", "ptr", "", MemoryOfAPool},
    {"aclrtAllocatorGetByStream", "stream", "", AllocatorStream},
    {"aclrtAllocatorUnregister", "stream", "", AllocatorStream},
    {"aclrtUnSubscribeReport", "stream", "", SubscribedStream},
    {"aclrtLaunchCallback", "stream", "", SubscribedStream},
    {"aclrtLaunchCallback", "blockType", "", Number<ACL_CALLBACK_NO_BLOCK>},
    {"", "threadId", "", [] { return static_cast<Argument>(pthread_self()); }},
    {"aclrtCtxGetSysParamOpt", "opt", "",
     [] {
       Need(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
       return Argument{ACL_OPT_DETERMINISTIC};
     }},
    {"aclrtCreateEventWithFlag", "flag", "", Number<ACL_EVENT_SYNC>},
    {"aclrtCreateEventExWithFlag", "flag", "", Number<ACL_EVENT_SYNC>},
    {"aclrtResetEvent", "event", "", OldEvent},
    {"aclrtQueryEvent", "event", "", OldEvent},
    {"aclrtQueryEventWaitStatus", "event", "", OldEvent},
    {"aclrtIpcGetEventHandle", "event", "", IpcEvent},
    {"aclrtIpcOpenEventHandle", "handle", "",
     [] {
       auto* handle = static_cast<aclrtIpcEventHandle*>(Scratch());
       Need(aclrtIpcGetEventHandle(reinterpret_cast<aclrtEvent>(IpcEvent()), handle));
       return At(handle);
     }},
    {"aclrtIpcMemGetExportKey", "len", "", Number<65>},
    {"aclrtIpcMemGetExportKey", "key", "", [] { return At(Scratch()); }},
    {"aclrtIpcMem*", "key", "", MemoryKey},
    {"aclrtNotifyGetExportKey", "len", "", Number<65>},
    {"aclrtNotifyImportByKey", "key", "", NotifyKey},
    {"aclrtNotifySetImportPid", "notify", "", ExportedNotify},
    {"aclrtMem*V2", "shareableHandle", "void*", [] { return One(ShareableHandle()); }},
    {"aclrtMem*ShareableHandle", "shareableHandle", "uint64_t", ShareableHandle},
    {"", "pidNum", "", Number<1>},
    {"", "shareType", "", Number<ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT>},
    {"aclrtMemGetAccess", "virPtr", "", [] { return At(Mapped()); }},
    {"aclrtMemGetAccess", "location", "",
     [] {
       auto* location = static_cast<aclrtMemLocation*>(Scratch());
       location->type = ACL_MEM_LOCATION_TYPE_DEVICE;
       return At(location);
     }},
    {"aclrtMemRetainAllocationHandle", "virPtr", "", [] { return At(Mapped()); }},
    {"aclrtDeviceTaskAbort", "timeout", "", Number<1000>},
    {"aclrtSetDeviceTaskAbortCallback", "regName", "", [] { return Text("misuse"); }},
    {"aclrtReg*StateCallback", "regName", "", [] { return Text("misuse"); }},
    {"aclrtGetMemUceInfo", "arraySize", "", Number<1>},
    {"aclrtMemUceRepair", "arraySize", "", Number<1>},
    {"aclrtMemUceRepair", "memUceInfoArray", "",
     [] {
       return One(aclrtMemUceInfo{DeviceMemory(), 64, {}});
     }},
    {"aclrtPersistentTaskClean", "stream", "",
     [] { return Made<aclrtCreateStreamWithConfig, aclrtStream, 0, ACL_STREAM_PERSISTENT>(); }},
    {"aclrtGetFunctionName", "funcHandle", "", FunctionHandle},
    {"acl*", "funcHandle", "aclrtFuncHandle", HostKernel},
    {"aclrtRegisterCpuFunc", "handle", "", DataBinary},
    {"aclrtRegisterCpuFunc", "funcName", "", [] { return Text("RunScale"); }},
    {"aclrtRegisterCpuFunc", "kernelName", "", [] { return Text("Scale"); }},
    {"aclrtBinaryLoadFromFile", "binPath", "",
     [] { return Text(ACLTAPE_HOST_KERNELS "/host_kernels.json"); }},
    {"aclrtBinaryLoadFrom*", "options", "", Number<0>},
    {"aclrtBinaryGetFunction", "kernelName", "", [] { return Text("Scale"); }},
    {"aclrtBinaryGetGlobal", "name", "", [] { return Text("launches"); }},
    {"aclrtGetFunctionAttribute", "attrType", "", Number<ACL_FUNC_ATTR_KERNEL_TYPE>},
    {"aclrtKernelArgsGetPlaceHolderBuffer", "paramHandle", "", Number<2>},
    {"aclrtKernelArgsParaUpdate", "paramHandle", "", Number<1>},
    {"aclrtKernelArgsParaUpdate", "paramSize", "", Number<8>},
    {"aclrtKernelArgsInitByUserMem", "argsHandle", "", [] { return At(Scratch()); }},
    {"aclrtKernelArgs*", "param", "", [] { return At(Scratch()); }},
    {"aclrtLaunchKernelWithConfig", "argsHandle", "", [] { return ArgumentList(true); }},
    {"aclrtLaunchKernelWithConfig", "reserve", "", Number<0>},
    {"aclrtLaunchKernel*", "cfg", "", Number<0>},
    {"aclrtLaunchKernelWithHostArgs", "placeHolderNum", "", Number<1>},
    {"", "numBlocks", "", Number<1>},
    {"aclrtHostRegister*", "ptr", "", [] { return At(std::aligned_alloc(4096, kBytes)); }},
    {"aclrtHostUnregister", "ptr", "", RegisteredMemory},
    {"aclrtHostGetDevicePointer", "pHost", "", RegisteredMemory},
    {"aclrtFreeHost*", "", "", [] { return At(PinnedMemory()); }},
    {"aclrtReleaseMemAddress", "virPtr", "", [] { return At(Reserved()); }},
    {"aclrtMapMem", "virPtr", "", [] { return At(Reserved()); }},
    {"aclrtMapMem", "size", "", Number<kGranularity>},
    {"aclrtMapMem", "offset", "", Number<0>},
    {"aclrtUnmapMem", "virPtr", "", [] { return At(Mapped()); }},
    {"aclrtMemSetAccess", "virPtr", "", [] { return At(Mapped()); }},
    {"aclrtMemSetAccess", "desc", "",
     [] {
       auto* desc = static_cast<aclrtMemAccessDesc*>(Scratch());
       desc->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
       return At(desc);
     }},
    {"aclrtMemSetAccess", "count", "", Number<1>},
    {"aclrtReserveMemAddress", "alignment", "", Number<0>},
    {"aclrtReserveMemAddress", "expectPtr", "", Number<0>},
    {"aclrtMallocPhysical", "size", "", Number<kGranularity>},
    {"", "prop", "aclrtPhysicalMemProp*",
     [] {
       auto* prop = static_cast<aclrtPhysicalMemProp*>(Scratch());
       prop->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
       prop->memAttr = ACL_HBM_MEM_HUGE;
       return At(prop);
     }},
    {"aclrtGetPrimaryCtxState", "flags", "", Number<0>},
    {"", "option", "aclrtMemGranularityOptions", Number<ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED>},
    {"aclrtSetStreamConfigOpt", "attr", "", Number<ACL_RT_STREAM_FLAG>},
    {"aclrtSetStreamConfigOpt", "valueSize", "", Number<8>},
    {"aclrtSetStreamConfigOpt", "attrValue", "", [] { return At(Scratch()); }},
    {"", "stmAttrType", "", Number<ACL_STREAM_ATTR_USER_CUSTOM_TAG>},
    {"aclrtMemcpy2d*", "width", "", Number<16>},
    {"aclrtMemcpy2d*", "height", "", Number<4>},
    {"aclrtMemcpyAsyncWithDesc", "kind", "", Number<ACL_MEMCPY_INNER_DEVICE_TO_DEVICE>},
    {"aclrtMemcpyAsyncWithOffset", "kind", "", Number<ACL_MEMCPY_INNER_DEVICE_TO_DEVICE>},
    {"aclrt*MemcpyDesc*", "kind", "", Number<ACL_MEMCPY_INNER_DEVICE_TO_DEVICE>},
    {"aclrtSetMemcpyDesc", "config", "", Number<0>},
    {"aclrtMemcpyAsyncWithDesc", "desc", "",
     [] {
       void* desc = DeviceMemory();
       Need(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, DeviceMemory(),
                               DeviceMemory(), 64, nullptr));
       return At(desc);
     }},
    {"aclrtMemcpyAsyncWithOffset", "dst", "", PlaceOfAddress},
    {"aclrtMemcpyAsyncWithOffset", "src", "", PlaceOfAddress},
    {"aclrtCmoAsyncWithDesc", "cmoDesc", "",
     [] {
       void* desc = DeviceMemory();
       Need(aclrtCmoSetDesc(desc, DeviceMemory(), 64));
       return At(desc);
     }},
    {"aclrtCmoAsyncWithDesc", "reserve", "", Number<0>},
    {"aclrtCheckMemType", "addrList", "", [] { return One(DeviceMemory()); }},
    {"aclrtCheckMemType", "size", "", Number<1>},
    {"aclrtCheckMemType", "memType", "", Number<ACL_RT_MEM_TYPE_DEV>},
    {"aclrtCheckMemType", "reserve", "", Number<0>},
    {"aclrtGetMemUsageInfo", "inputNum", "", Number<1>},
    {"aclrtGet*DevIdBy*", "phyDevId", "int32_t", Number<0>},
    {"aclrtGet*DevIdBy*", "logicDevId", "int32_t", Number<0>},
    {"aclrtGet*DevIdBy*", "userDevid", "int32_t", Number<0>},
    {"aclrtGet*DevIdBy*", "userDevId", "int32_t", Number<0>},
    {"aclrtDeviceGetByPCIBusId", "pciBusId", "", [] { return Text("0000:01:00.0"); }},
    {"", "otherDeviceId", "", Number<0>},
    {"aclrtMemcpy*", "kind", "", Number<ACL_MEMCPY_DEVICE_TO_DEVICE>},
    {"aclrtMemcpy", "src", "", [] { return At(DeviceMemory()); }},
    {"aclrtMemsetD32*", "N", "", Number<16>},
    {"aclrtSwitchStream", "trueStream", "", [] { return At(bound_other); }},
    {"aclrtSwitchStream", "falseStream", "", Number<0>},
    // Arguments are made from left to right, so the model that a stream is bound to comes first.
    {"aclrtSwitchStream", "leftValue", "",
     [] {
       BuiltModel();
       return At(DeviceMemory());
     }},
    {"aclrtSwitchStream", "cond", "", Number<ACL_RT_EQUAL>},
    {"aclrtSwitchStream", "dataType", "", Number<ACL_RT_SWITCH_INT64>},
    {"aclrtSwitchStream", "stream", "", BoundStream},
    {"aclrtActiveStream", "activeStream", "",
     [] {
       BuiltModel();
       return At(bound_other);
     }},
    {"aclrtActiveStream", "stream", "", BoundStream},
    {"aclrtSetLabel", "stream", "", BoundStream},
    {"aclrtSwitchLabelByIndex", "stream", "", BoundStream},
    {"aclrtSwitchLabelByIndex", "labelList", "",
     [] {
       aclrtLabel label = nullptr;
       aclrtLabelList list = nullptr;
       Need(aclrtCreateLabel(&label));
       BoundStream();
       Need(aclrtSetLabel(label, bound_stream));
       Need(aclrtCreateLabelList(&label, 1, &list));
       return At(list);
     }},
    {"aclrtSwitchLabelByIndex", "maxValue", "", Number<1>},
    {"aclrtCreateLabelList", "labels", "",
     [] { return One(reinterpret_cast<aclrtLabel>(Made<aclrtCreateLabel, aclrtLabel>())); }},
    {"aclrtNotifyBatchReset", "notifies", "",
     [] { return One(reinterpret_cast<aclrtNotify>(Made<aclrtCreateNotify, aclrtNotify, 0>())); }},
    {"aclrtMemcpyBatch*", "dsts", "", [] { return One(DeviceMemory()); }},
    {"aclrtMemcpyBatch*", "srcs", "", [] { return One(DeviceMemory()); }},
    {"aclrtMemcpyBatch*", "destMaxs", "", [] { return One(size_t{64}); }},
    {"aclrtMemcpyBatch*", "sizes", "", [] { return One(size_t{64}); }},
    {"aclrtMemcpyBatch*", "attrsIndexes", "", [] { return One(size_t{0}); }},
    {"aclrtMemcpyBatch*", "attrs", "",
     [] {
       auto* attributes = static_cast<aclrtMemcpyBatchAttr*>(Scratch());
       attributes->dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
       attributes->srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
       return At(attributes);
     }},
    {"aclmdlRICaptureEnd", "stream", "", [] { return At(CapturingStream()); }},
    {"aclmdlRICaptureTaskGrpBegin", "stream", "", [] { return At(CapturingStream()); }},
    {"aclmdlRICaptureTaskGrpEnd", "stream", "", [] { return At(GroupStream()); }},
    {"aclmdlRICaptureTaskUpdateEnd", "stream", "", [] { return At(UpdatingStream()); }},
    {"aclmdlRICaptureToModelRIBegin", "modelRI", "", SubGraph},
    {"aclmdlRICondHandleCreate", "modelRI", "", [] { return At(ModelBeingCaptured()); }},
    {"aclmdlRIAddCondTask", "params", "",
     [] {
       auto* params = static_cast<aclmdlRICondTaskParams*>(Scratch());
       params->handle = reinterpret_cast<aclmdlRICondHandle>(Condition());
       params->size = 1;
       params->modelRIArray = static_cast<aclmdlRI*>(Scratch());
       return At(params);
     }},
    {"aclmdlRIAddCondTask", "stream", "", [] { return At(condition_stream); }},
    {"aclmdlRIDebugJsonPrint", "path", "", [] { return Text("/dev/null"); }},
    {"aclmdlRIExecute", "modelRI", "", [] { return FinishedModel(true); }},
    {"aclmdlRIAbort", "modelRI", "", [] { return FinishedModel(true); }},
    {"aclmdlRIBuildEnd", "modelRI", "", [] { return FinishedModel(false); }},
    {"aclmdlRIBuildEnd", "reserve", "", Number<0>},
    {"aclmdlRIBindStream", "modelRI", "", EmptyBuiltModel},
    {"aclmdlRIBindStream", "stream", "",
     [] { return Made<aclrtCreateStreamWithConfig, aclrtStream, 0, ACL_STREAM_PERSISTENT>(); }},
    {"aclmdlRIUnbindStream", "modelRI", "", BuiltModel},
    {"aclmdlRIUnbindStream", "stream", "", BoundStream},
    {"aclmdlRIEndTask", "modelRI", "", BuiltModel},
    {"aclmdlRIEndTask", "stream", "", BoundStream},
    {"aclmdlRIDestroyUnregisterCallback", "modelRI", "",
     [] {
       const Argument model = CapturedModel();
       Need(aclmdlRIDestroyRegisterCallback(reinterpret_cast<aclmdlRI>(model), DoNothing, nullptr));
       return model;
     }},
    {"aclmdlRIGetStreams", "numStreams", "", [] { return One(uint32_t{16}); }},
    {"aclmdlRIGetTasksByStream", "stream", "",
     [] { return At(HiddenStream(reinterpret_cast<aclmdlRI>(CapturedModel()))); }},
    {"aclmdlRIGetTasksByStream", "numTasks", "", [] { return One(uint32_t{16}); }},
    {"aclmdlRITaskSetParams", "params", "", TaskParams},
    {"aclmdlRIKernelTaskGetAttribute", "attrId", "", Number<1>},
    {"aclrtValueWait", "flag", "", Number<ACL_STREAM_WAIT_VALUE_EQ>},
    {"aclrtValueW*", "value", "", Number<0>},
    {"aclrtSetOp*", "timeout", "", Number<0>},
    {"aclrtGetOverflowStatus", "outputSize", "", Number<64>},
    {"aclCreateDataBuffer", "data", "", [] { return At(DeviceMemory()); }},
    {"aclCreate*Array", "value", "", [] { return At(Scratch()); }},
    {"aclCreateScalar", "value", "", [] { return At(Scratch()); }},
    {"aclCreateTensorList", "value", "", [] { return One(Tensor()); }},
    {"aclCreateScalarList", "value", "", [] { return One(Scalar()); }},
    {"aclCreateTensor", "stride", "", [] { return One(int64_t{1}); }},
    {"aclInitTensor", "stride", "", [] { return One(int64_t{1}); }},
    {"aclGetTensorDescDim*", "index", "", Number<0>},
    {"aclopCompileAndExecute*", "opType", "", [] { return Text("Identity"); }},
    {"aclopCompileAndExecute*", "inputDesc", "",
     [] { return One(aclCreateTensorDesc(ACL_FLOAT, 1, &kFour, ACL_FORMAT_ND)); }},
    {"aclopCompileAndExecute*", "outputDesc", "",
     [] { return One(aclCreateTensorDesc(ACL_FLOAT, 1, &kFour, ACL_FORMAT_ND)); }},
    {"aclopCompileAndExecute*", "inputs", "",
     [] { return One(aclCreateDataBuffer(DeviceMemory(), 16)); }},
    {"aclopCompileAndExecute*", "outputs", "",
     [] { return One(aclCreateDataBuffer(DeviceMemory(), 16)); }},
    {"aclopSetAttrListString", "values", "", [] { return One("text"); }},
    {"aclopSetAttrListListInt", "numValues", "", [] { return One(int{1}); }},
    {"aclopSetAttrListListInt", "values", "", [] { return One(&kFour); }},
    {"aclGetCompileopt", "length", "", Number<64>},
    {"aclprofCreateConfig", "deviceNums", "", Number<1>},
    {"aclprofSetConfig", "configType", "", Number<ACL_PROF_PATH>},
    {"aclprof*", "stamp", "", [] { return At(aclprofCreateStamp()); }},
    {"aclprof*", "msg", "", [] { return Text("message"); }},
    {"aclprof*", "message", "", [] { return Text("message"); }},
    {"aclprofRangePushEx", "attr", "", [] { return At(Scratch()); }},
    {"aclprofRangeStop", "rangeId", "",
     [] {
       uint32_t range = 0;
       Need(aclprofRangeStart(aclprofCreateStamp(), &range));
       return Argument{range};
     }},

    {"", "deviceId", "int32_t", Number<0>},
    {"", "deviceId", "uint32_t", Number<0>},
    {"", "peerDeviceId", "", Number<0>},
    {"", "flag", "uint32_t", Number<0>},
    {"", "flag", "uint64_t", Number<0>},
    {"", "flags", "uint32_t", Number<0>},
    {"", "flags", "uint64_t", Number<0>},
    {"", "mode", "uint64_t", Number<0>},
    {"", "priority", "uint32_t", Number<0>},
    {"", "timeout", "", Number<1000>},
    {"", "index", "", Number<0>},
    {"", "irIndex", "", Number<0>},
    {"", "relativeIndex", "", Number<0>},
    {"", "offset", "int64_t", Number<0>},
    {"", "viewDimsNum", "uint64_t", Number<1>},
    {"", "storageDimsNum", "uint64_t", Number<1>},
    {"", "viewDims", "int64_t*", [] { return At(&kFour); }},
    {"", "storageDims", "int64_t*", [] { return At(&kFour); }},
    {"", "dims", "int64_t*", [] { return At(&kFour); }},
    {"", "fmt", "", [] { return Text("text"); }},
    {"", "num", "size_t", Number<1>},
    {"", "value", "uint32_t", Number<1>},
    {"", "userData", "", Number<0>},
    {"", "args", "", Number<0>},
    {"", "numBatches", "", Number<1>},
    {"", "numAttrs", "", Number<1>},
    {"", "numDims", "", Number<1>},
    {"", "numInputs", "", Number<1>},
    {"", "numOutputs", "", Number<1>},
    {"", "numValues", "int", Number<1>},
    {"", "numLists", "", Number<1>},
    {"", "size", "uint64_t", Number<1>},
    {"", "allocator", "", [] { return At(Scratch()); }},

    {"", "", "void*", [] { return At(DeviceMemory()); }},
    {"", "", "size_t", Number<64>},
    {"", "", "uint64_t", Number<64>},
    {"", "", "int64_t", Number<64>},
    {"", "", "uint32_t", Number<64>},
    {"", "", "int32_t", Number<64>},
    {"", "", "uint8_t", Number<1>},
    {"", "", "int", Number<1>},
    {"", "", "float", Number<1>},
    {"", "", "aclFloat16", Number<1>},
    {"", "", "char*", [] { return At(Scratch()); }},
    {"", "", "aclrtCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclInitCallbackFunc", [] { return At(reinterpret_cast<void*>(OnInit)); }},
    {"", "", "aclFinalizeCallbackFunc", [] { return At(reinterpret_cast<void*>(OnFinalize)); }},
    {"", "", "acldumpMessageCallback", [] { return At(reinterpret_cast<void*>(TakeChunk)); }},
    {"", "", "aclrtHostFunc", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtStreamStateCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtDeviceStateCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtDeviceTaskAbortCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtOpExceptionCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtExceptionInfoCallback", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtAllocatorAllocFunc", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtAllocatorFreeFunc", [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtAllocatorAllocAdviseFunc",
     [] { return At(reinterpret_cast<void*>(DoNothing)); }},
    {"", "", "aclrtAllocatorGetAddrFromBlockFunc",
     [] { return At(reinterpret_cast<void*>(DoNothing)); }},
};

// Enumerations, of which 0 is a value that everyone takes unless a row above says otherwise.
const char* const kEnumerations[] = {"aclCANNPackageName",
                                     "aclRegisterCallbackType",
                                     "acldumpType",
                                     "aclplatformCoreType",
                                     "aclplatformDevInfo",
                                     "aclprofSubscribeOpAttri",
                                     "acltdtQueueAttrType",
                                     "acltdtQueueRouteParamType",
                                     "acltdtQueueRouteQueryInfoParamType",
                                     "acltdtTensorType",
                                     "aclCannAttr",
                                     "aclCompileOpt",
                                     "aclDataType",
                                     "aclDeviceInfo",
                                     "aclFormat",
                                     "aclLogLevel",
                                     "aclMemType",
                                     "aclSysParamOpt",
                                     "aclmdlRICaptureMode",
                                     "aclmdlRICondHandleFlag",
                                     "aclopCompileType",
                                     "aclopEngineType",
                                     "aclprofAicoreMetrics",
                                     "aclprofStepTag",
                                     "aclrtCallbackBlockType",
                                     "aclrtCmoType",
                                     "aclrtCompareDataType",
                                     "aclrtCondition",
                                     "aclrtDevAttr",
                                     "aclrtDevResLimitType",
                                     "aclrtFloatOverflowMode",
                                     "aclrtHacType",
                                     "aclrtHostRegisterType",
                                     "aclrtLastErrLevel",
                                     "aclrtLaunchKernelAttrId",
                                     "aclrtMemAttr",
                                     "aclrtMemGranularityOptions",
                                     "aclrtMemHandleType",
                                     "aclrtMemMallocPolicy",
                                     "aclrtMemcpyKind",
                                     "aclrtStreamAttr",
                                     "aclrtStreamConfigAttr",
                                     "aclrtTsId"};

bool Fits(const char* pattern, const char* name) {
  return *pattern == '\0' || fnmatch(pattern, name, 0) == 0;
}

bool FitsType(std::string_view wanted, std::string_view type) {
  return wanted.empty() || wanted == type;
}

// Null when no table knows the parameter.
bool Find(const Function& function, const Parameter& parameter, Argument (**make)()) {
  for (const Right& row : kRight) {
    if (Fits(row.function, function.name) && FitsType(row.parameter, parameter.name) &&
        FitsType(row.type, parameter.type)) {
      *make = row.make;
      return true;
    }
  }
  if (const HandleType* handle = FindHandleType(parameter.type)) {
    *make = handle->make != nullptr ? handle->make : Number<0>;
    return true;
  }
  for (const char* enumeration : kEnumerations) {
    *make = Number<0>;
    if (parameter.type == enumeration) return true;
  }
  // Outputs, structures, and arrays that calls fill.
  *make = [] { return At(Scratch()); };
  return parameter.type.ends_with('*');
}

// Addresses by function: what the call, or its task, reads or writes.
struct AddressRow {
  const char* function;
  const char* parameter;
};
const AddressRow kAddresses[] = {
    {"aclrtMemcpy", "dst"},
    {"aclrtMemcpy", "src"},
    {"aclrtMemcpyAsync", "dst"},
    {"aclrtMemcpyAsync", "src"},
    {"aclrtMemcpy2d*", "dst"},
    {"aclrtMemcpy2d*", "src"},
    {"aclrtMemset*", "devPtr"},
    {"aclrtMemset*", "ptr"},
    {"aclrtMemFlush", "devPtr"},
    {"aclrtMemInvalidate", "devPtr"},
    {"aclrtMemGetAddressRange", "ptr"},
    {"aclrtFree*", "devPtr"},
    {"aclrtMemPoolFreeAsync", "ptr"},
    {"aclrtMemP2PMap", "devPtr"},
    {"acltdt*queueData", "data"},
    {"aclrtFreeHost*", "hostPtr"},
    {"aclrtHostUnregister", "ptr"},
    {"aclrtHostGetDevicePointer", "pHost"},
    {"aclrtValueW*", "devAddr"},
    {"aclrtGetOverflowStatus", "outputAddr"},
    {"aclrtReduceAsync", "dst"},
    {"aclrtReduceAsync", "src"},
    {"aclrtSwitchLabelByIndex", "ptr"},
    {"aclrtSwitchStream", "leftValue"},
    {"aclrtSwitchStream", "rightValue"},
    {"aclrtReleaseMemAddress", "virPtr"},
    {"aclrtMapMem", "virPtr"},
    {"aclrtUnmapMem", "virPtr"},
    {"aclrtMemSetAccess", "virPtr"},
    {"aclrtMemGetAccess", "virPtr"},
    {"aclrtMemRetainAllocationHandle", "virPtr"},
    {"aclrtIpcMemGetExportKey", "devPtr"},
    {"aclrtMemcpyAsyncWith*", "desc"},
    {"aclrtMemcpyAsyncWith*", "dst"},
    {"aclrtMemcpyAsyncWith*", "src"},
    {"aclrtSetMemcpyDesc", "desc"},
    {"aclrtSetMemcpyDesc", "srcAddr"},
    {"aclrtSetMemcpyDesc", "dstAddr"},
    {"aclrtCmo*", "src"},
    {"aclrtCmo*", "cmoDesc"},
    {"aclrtLaunchKernel*", "argsData"},
};

}  // namespace

const HandleType* FindHandleType(std::string_view type) {
  for (const HandleType& row : kHandleTypes) {
    if (type == row.type) return &row;
  }
  return nullptr;
}

bool IsAddress(const Function& function, const Parameter& parameter) {
  for (const AddressRow& row : kAddresses) {
    if (Fits(row.function, function.name) && parameter.name == row.parameter) return true;
  }
  return false;
}

void SetUp() {
  Need(aclInit(nullptr));
  Need(aclrtSetDevice(0));
}

std::vector<Argument> RightArguments(const Function& function) {
  std::vector<Argument> arguments;
  for (const Parameter& parameter : function.parameters) {
    Argument (*make)() = nullptr;
    if (!Find(function, parameter, &make)) throw std::runtime_error("no argument is known");
    arguments.push_back(make());
  }
  return arguments;
}

std::string ParametersWithoutArgument(const Function& function) {
  std::string missing;
  for (const Parameter& parameter : function.parameters) {
    Argument (*make)() = nullptr;
    if (Find(function, parameter, &make)) continue;
    missing += std::string(function.name) + ": " + std::string(parameter.type) + " " +
               std::string(parameter.name) + "\n";
  }
  return missing;
}

Argument FreedAddress(const Function& function, const Parameter& parameter) {
  const bool host = std::string_view(function.name).starts_with("aclrtFreeHost");
  const bool range = parameter.name == "virPtr";
  void* memory = host ? PinnedMemory() : range ? Mapped() : DeviceMemory();
  if (range) {
    Need(aclrtUnmapMem(memory));
    if (std::string_view(function.name) != "aclrtUnmapMem") Need(aclrtReleaseMemAddress(memory));
  } else {
    Need(host ? aclrtFreeHost(memory) : aclrtFree(memory));
  }
  return At(memory);
}

}  // namespace acltape::misuse
