// Queues of messages (section 33 of the rules).
#include <cstring>

#include "acl/acl_tdt_queue.h"
#include "runtime/device/channels/message_queues.h"
#include "runtime/device/channels/queue_settings.h"
#include "runtime/device/channels/timed_wait.h"
#include "runtime/device/memory.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

namespace {

aclError ReportOutcome(QueueOutcome outcome, uint32_t id, const char* call) {
  switch (outcome) {
    case QueueOutcome::kDone:
      return ACL_SUCCESS;
    case QueueOutcome::kNoQueue:
      return Fail(ACL_ERROR_INVALID_QUEUE_ID, "%s: there is no queue %u", call, id);
    case QueueOutcome::kFull:
      return Fail(ACL_ERROR_RT_QUEUE_FULL, "%s: queue %u is full", call, id);
    case QueueOutcome::kEmpty:
      return Fail(ACL_ERROR_RT_QUEUE_EMPTY, "%s: queue %u is empty", call, id);
    case QueueOutcome::kTooLong:
      break;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: dataSize is less than the message of queue %u has",
              call, id);
}

aclError CheckUserData(const void* user, size_t bytes, const char* call) {
  if (bytes > kMostUserBytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: userDataSize is %zu; at most %zu", call, bytes,
                kMostUserBytes);
  }
  if (user == nullptr && bytes > 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: userData is NULL and userDataSize %zu", call, bytes);
  }
  return ACL_SUCCESS;
}

}  // namespace

aclError acltdtCreateQueue(const acltdtQueueAttr* attr, uint32_t* qid) {
  ACLTAPE_CALL("acltdtCreateQueue");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(qid, kCall, "qid"));
  if (attr != nullptr) ACLTAPE_RETURN_IF_FAILED(CheckPlain(attr, kCall, "attr"));
  const acltdtQueueAttr usual;
  const acltdtQueueAttr& wanted = attr != nullptr ? *attr : usual;
  if (MessageQueues::Get().Create(wanted.name, wanted.depth, qid)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is a queue %s already", kCall, wanted.name);
}

aclError acltdtDestroyQueue(uint32_t qid) {
  ACLTAPE_CALL("acltdtDestroyQueue");
  if (MessageQueues::Get().Destroy(qid)) return ACL_SUCCESS;
  return ReportOutcome(QueueOutcome::kNoQueue, qid, kCall);
}

aclError acltdtEnqueueData(uint32_t qid, const void* data, size_t dataSize, const void* userData,
                           size_t userDataSize, int32_t timeout, uint32_t rsv) {
  ACLTAPE_CALL("acltdtEnqueueData");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(data, kCall, "data"));
  ACLTAPE_RETURN_IF_FAILED(CheckUserData(userData, userDataSize, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckQueueTimeout(timeout, kCall));
  if (dataSize == 0 || rsv != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: %s", kCall,
                rsv != 0 ? "rsv is reserved and has to be 0" : "dataSize is 0");
  }
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(data, dataSize, kCall, "data"));
  QueueMessage message;
  const auto* first = static_cast<const char*>(data);
  message.data.assign(first, first + dataSize);
  const auto* user = static_cast<const char*>(userData);
  if (userDataSize > 0) message.user.assign(user, user + userDataSize);
  return ReportOutcome(MessageQueues::Get().Send(qid, std::move(message), timeout), qid, kCall);
}

// User data that is longer than what was sent is filled up with zeros.
aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                           void* userData, size_t userDataSize, int32_t timeout) {
  ACLTAPE_CALL("acltdtDequeueData");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(data, kCall, "data"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(retDataSize, kCall, "retDataSize"));
  ACLTAPE_RETURN_IF_FAILED(CheckUserData(userData, userDataSize, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckQueueTimeout(timeout, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(data, dataSize, kCall, "data"));
  std::shared_ptr<const QueueMessage> message;
  size_t bytes = 0;
  const QueueOutcome outcome =
      MessageQueues::Get().Receive(qid, dataSize, timeout, &message, &bytes);
  if (outcome == QueueOutcome::kTooLong) *retDataSize = bytes;
  ACLTAPE_RETURN_IF_FAILED(ReportOutcome(outcome, qid, kCall));
  std::memcpy(data, message->data.data(), bytes);
  *retDataSize = bytes;
  const size_t user = std::min(userDataSize, message->user.size());
  if (user > 0) std::memcpy(userData, message->user.data(), user);
  if (userDataSize > user) std::memset(static_cast<char*>(userData) + user, 0, userDataSize - user);
  return ACL_SUCCESS;
}
