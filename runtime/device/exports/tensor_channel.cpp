// Channels of tensors (section 32 of the rules). What goes in at one end comes out at the other, in
// this process: no operator of the device takes part.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device/channels/tensor_pipe.h"
#include "runtime/device/channels/timed_wait.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

struct acltdtChannelHandle {
  std::string name;
  uint32_t device;
  std::shared_ptr<TensorPipe> pipe;
  bool bounded;   // made with a capacity: counted, cleared, and time-outs are free to choose
  bool receives;  // true for every bounded channel
};

namespace {

constexpr size_t kLeastCapacity = 2;
constexpr size_t kMostCapacity = 8192;
constexpr size_t kMostChannelName = 127;
// A channel without a capacity has this one.
constexpr size_t kUsualCapacity = 128;
// A channel without a capacity receives when its name begins so, from the one of the rest's name.
constexpr std::string_view kReceiverPrefix = "TF_RECEIVE_";

// Pipes of live channels, by device and name.
struct ChannelNames {
  std::mutex mutex;
  std::map<std::pair<uint32_t, std::string>, std::weak_ptr<TensorPipe>> bounded;
  std::map<std::pair<uint32_t, std::string>, std::weak_ptr<TensorPipe>> usual;
};

ChannelNames& GetChannelNames() {
  static ChannelNames& names = *new ChannelNames;
  return names;
}

bool ChannelMayBeMade(uint32_t device, const char* name, const char* call) {
  if (CheckPointer(name, call, "name") != ACL_SUCCESS) return false;
  if (std::strlen(name) > kMostChannelName) {
    Fail(ACL_ERROR_INVALID_PARAM, "%s: the name has more than %zu bytes", call, kMostChannelName);
    return false;
  }
  if (device > INT32_MAX || DeviceAt(static_cast<int32_t>(device)) == nullptr) {
    Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %u", call, device);
    return false;
  }
  return true;
}

aclError CheckBounded(const acltdtChannelHandle& channel, const char* call) {
  if (channel.bounded) return ACL_SUCCESS;
  return Fail(ACL_ERROR_FEATURE_UNSUPPORTED, "%s: channel %s was made without a capacity", call,
              channel.name.c_str());
}

aclError CheckChannelTimeout(const acltdtChannelHandle& channel, int32_t timeout,
                             const char* call) {
  if (channel.bounded) return CheckQueueTimeout(timeout, call);
  if (timeout == -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "%s: channel %s was made without a capacity, so the time-out has to be -1", call,
              channel.name.c_str());
}

}  // namespace

acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name) {
  if (!ChannelMayBeMade(deviceId, name, "acltdtCreateChannel")) return nullptr;
  std::string_view shared = name;
  const bool receives = shared.starts_with(kReceiverPrefix);
  if (receives) shared.remove_prefix(kReceiverPrefix.size());
  ChannelNames& names = GetChannelNames();
  const std::lock_guard lock(names.mutex);
  std::weak_ptr<TensorPipe>& known = names.usual[{deviceId, std::string(shared)}];
  std::shared_ptr<TensorPipe> pipe = known.lock();
  if (pipe == nullptr) known = pipe = std::make_shared<TensorPipe>(kUsualCapacity);
  return Plain<acltdtChannelHandle>().Create(name, deviceId, std::move(pipe), false, receives);
}

acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                     size_t capacity) {
  constexpr const char* kCall = "acltdtCreateChannelWithCapacity";
  if (!ChannelMayBeMade(deviceId, name, kCall)) return nullptr;
  if (capacity < kLeastCapacity || capacity > kMostCapacity) {
    Fail(ACL_ERROR_INVALID_PARAM, "%s: the capacity is %zu; valid: %zu to %zu", kCall, capacity,
         kLeastCapacity, kMostCapacity);
    return nullptr;
  }
  ChannelNames& names = GetChannelNames();
  const std::lock_guard lock(names.mutex);
  std::weak_ptr<TensorPipe>& known = names.bounded[{deviceId, name}];
  if (!known.expired()) {
    Fail(ACL_ERROR_INVALID_PARAM, "%s: device %u has a channel %s already", kCall, deviceId, name);
    return nullptr;
  }
  auto pipe = std::make_shared<TensorPipe>(capacity);
  known = pipe;
  return Plain<acltdtChannelHandle>().Create(name, deviceId, std::move(pipe), true, true);
}

aclError acltdtDestroyChannel(acltdtChannelHandle* handle) {
  ACLTAPE_CALL("acltdtDestroyChannel");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  if (handle->bounded) handle->pipe->Stop();
  return DestroyPlain(handle, kCall, "handle");
}

aclError acltdtStopChannel(acltdtChannelHandle* handle) {
  ACLTAPE_CALL("acltdtStopChannel");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  handle->pipe->Stop();
  return ACL_SUCCESS;
}

aclError acltdtCleanChannel(acltdtChannelHandle* handle) {
  ACLTAPE_CALL("acltdtCleanChannel");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckBounded(*handle, kCall));
  handle->pipe->Clear();
  return ACL_SUCCESS;
}

aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                          int32_t timeout) {
  ACLTAPE_CALL("acltdtSendTensor");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataset, kCall, "dataset"));
  ACLTAPE_RETURN_IF_FAILED(CheckChannelTimeout(*handle, timeout, kCall));
  if (dataset->items.empty()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the dataset has no item", kCall);
  }
  TensorBatch batch;
  ACLTAPE_RETURN_IF_FAILED(CopyBatch(*dataset, kCall, &batch));
  // Another thread may end the channel while this one waits.
  const std::shared_ptr<TensorPipe> pipe = handle->pipe;
  const std::string name = handle->name;
  const bool bounded = handle->bounded;
  if (pipe->Send(batch, timeout)) return ACL_SUCCESS;
  return Fail(bounded ? ACL_ERROR_RT_QUEUE_FULL : ACL_ERROR_FAILURE, "%s: channel %s %s", kCall,
              name.c_str(), pipe->stopped() ? "was stopped" : "is full");
}

aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                             int32_t timeout) {
  ACLTAPE_CALL("acltdtReceiveTensor");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataset, kCall, "dataset"));
  ACLTAPE_RETURN_IF_FAILED(CheckChannelTimeout(*handle, timeout, kCall));
  if (!handle->receives) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "%s: channel %s sends; one without a capacity receives when its name begins with "
                "TF_RECEIVE_",
                kCall, handle->name.c_str());
  }
  if (!dataset->items.empty()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the dataset has items already", kCall);
  }
  const std::shared_ptr<TensorPipe> pipe = handle->pipe;
  const std::string name = handle->name;
  const bool bounded = handle->bounded;
  std::optional<TensorBatch> batch = pipe->Receive(timeout);
  if (!batch) {
    return Fail(bounded ? ACL_ERROR_RT_QUEUE_EMPTY : ACL_ERROR_FAILURE, "%s: channel %s %s", kCall,
                name.c_str(), pipe->stopped() ? "was stopped" : "is empty");
  }
  if (FillDataset(std::move(*batch), name, dataset)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_BAD_ALLOC, "%s: no memory is left", kCall);
}

aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size) {
  ACLTAPE_CALL("acltdtQueryChannelSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(size, kCall, "size"));
  ACLTAPE_RETURN_IF_FAILED(CheckBounded(*handle, kCall));
  *size = handle->pipe->size();
  return ACL_SUCCESS;
}
