// Queues of messages, and routes between them (section 33 of the rules).
#include <chrono>
#include <cstring>

#include "acl/acl_tdt_queue.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class MessageQueue : public SoftDevice {
 protected:
  uint32_t NewQueue(uint32_t depth = 2) {
    acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
    EXPECT_OK(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &depth));
    uint32_t queue = 0;
    EXPECT_OK(acltdtCreateQueue(attributes, &queue));
    EXPECT_OK(acltdtDestroyQueueAttr(attributes));
    made_.push_back(queue);
    return queue;
  }
  void TearDown() override {
    for (uint32_t queue : made_) acltdtDestroyQueue(queue);
    SoftDevice::TearDown();
  }

  aclError Send(uint32_t queue, int32_t value, int32_t timeout = 0) {
    return acltdtEnqueueData(queue, &value, sizeof(value), nullptr, 0, timeout, 0);
  }
  // -1: nothing came.
  int32_t Receive(uint32_t queue, int32_t timeout = 0) {
    int32_t value = 0;
    size_t bytes = 0;
    if (acltdtDequeueData(queue, &value, sizeof(value), &bytes, nullptr, 0, timeout) != 0) {
      return -1;
    }
    EXPECT_EQ(bytes, sizeof(value));
    return value;
  }

  // Binds routes and gives the code; `statuses` gets that of each.
  aclError Bind(const std::vector<std::pair<uint32_t, uint32_t>>& routes,
                std::vector<int32_t>* statuses = nullptr, bool unbind = false) {
    acltdtQueueRouteList* list = acltdtCreateQueueRouteList();
    for (const auto& [source, destination] : routes) {
      acltdtQueueRoute* route = acltdtCreateQueueRoute(source, destination);
      EXPECT_OK(acltdtAddQueueRoute(list, route));
      EXPECT_OK(acltdtDestroyQueueRoute(route));
    }
    const aclError code = unbind ? acltdtUnbindQueueRoutes(list) : acltdtBindQueueRoutes(list);
    acltdtQueueRoute* view = acltdtCreateQueueRoute(0, 0);
    for (size_t i = 0; i < acltdtGetQueueRouteNum(list); ++i) {
      EXPECT_OK(acltdtGetQueueRoute(list, i, view));
      int32_t status = -1;
      size_t bytes = 0;
      EXPECT_OK(
          acltdtGetQueueRouteParam(view, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &bytes, &status));
      if (statuses != nullptr) statuses->push_back(status);
    }
    EXPECT_OK(acltdtDestroyQueueRoute(view));
    EXPECT_OK(acltdtDestroyQueueRouteList(list));
    return code;
  }

  std::vector<uint32_t> made_;
};

TEST_F(MessageQueue, QUE_01_AQueueWithoutAttributesHoldsEightMessages) {
  uint32_t queue = 0;
  ASSERT_OK(acltdtCreateQueue(nullptr, &queue));
  for (int32_t i = 0; i < 8; ++i) EXPECT_OK(Send(queue, i));
  EXPECT_CODE(207014, Send(queue, 8));
  EXPECT_OK(acltdtDestroyQueue(queue));
  EXPECT_CODE(100032, acltdtDestroyQueue(queue));
  EXPECT_CODE(100032, Send(queue, 0));
  EXPECT_NE(NewQueue(), queue);  // numbers are given out once
}

TEST_F(MessageQueue, QUE_02_AttributesAreToldAgain) {
  acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
  uint32_t depth = 0;
  size_t bytes = 0;
  EXPECT_OK(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &bytes, &depth));
  EXPECT_EQ(depth, 8u);
  depth = 5;
  EXPECT_OK(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &depth));
  const char* name = "a name";
  EXPECT_OK(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof(name), &name));
  const char* told = nullptr;
  EXPECT_OK(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof(told), &bytes, &told));
  EXPECT_STREQ(told, name);
  EXPECT_EQ(bytes, sizeof(told));
  EXPECT_OK(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 8, &bytes, &depth));
  EXPECT_EQ(depth, 5u);
  EXPECT_EQ(bytes, 4u);

  uint32_t queue = 0, other = 0;
  ASSERT_OK(acltdtCreateQueue(attributes, &queue));
  EXPECT_CODE(100000, acltdtCreateQueue(attributes, &other));  // the name is in use
  EXPECT_OK(acltdtDestroyQueue(queue));
  EXPECT_OK(acltdtCreateQueue(attributes, &other));
  EXPECT_OK(acltdtDestroyQueue(other));

  const std::string long_name(128, 'x');
  name = long_name.c_str();
  EXPECT_CODE(100000, acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 8, &name));
  for (uint32_t wrong : {0u, 1u, 8193u}) {
    EXPECT_CODE(100000, acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &wrong));
  }
  EXPECT_CODE(100000, acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 8, &depth));
  EXPECT_CODE(100000, acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 4, &bytes, &told));
  EXPECT_CODE(100000,
              acltdtSetQueueAttr(attributes, static_cast<acltdtQueueAttrType>(7), 4, &depth));
  EXPECT_OK(acltdtDestroyQueueAttr(attributes));
}

TEST_F(MessageQueue, QUE_03_MessagesKeepTheirOrderAndWaitForRoom) {
  const uint32_t queue = NewQueue(2);
  std::thread sender([&] {
    for (int32_t i = 0; i < 300; ++i) ASSERT_OK(Send(queue, i, -1));
  });
  for (int32_t i = 0; i < 300; ++i) ASSERT_EQ(Receive(queue, -1), i);
  sender.join();
  EXPECT_EQ(Receive(queue), -1);
  const auto begin = std::chrono::steady_clock::now();
  int32_t value = 0;
  size_t bytes = 0;
  EXPECT_CODE(207013, acltdtDequeueData(queue, &value, 4, &bytes, nullptr, 0, 20));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_CODE(100000, acltdtDequeueData(queue, &value, 4, &bytes, nullptr, 0, -2));
}

TEST_F(MessageQueue, QUE_03_WhoWaitsForAQueueThatIsDestroyedIsTold) {
  const uint32_t queue = NewQueue();
  std::thread receiver([&] {
    int32_t value = 0;
    size_t bytes = 0;
    EXPECT_CODE(100032, acltdtDequeueData(queue, &value, 4, &bytes, nullptr, 0, -1));
  });
  EXPECT_OK(acltdtDestroyQueue(queue));
  receiver.join();
}

TEST_F(MessageQueue, QUE_04_DataOfTheDeviceAndUserDataTravelTogether) {
  const uint32_t queue = NewQueue();
  void *source = nullptr, *target = nullptr;
  ASSERT_OK(aclrtMalloc(&source, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMalloc(&target, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(source, 64, 7, 64));
  ASSERT_OK(aclrtMemset(target, 64, 0, 64));
  EXPECT_OK(acltdtEnqueueData(queue, source, 64, "user", 5, 0, 0));
  ASSERT_OK(aclrtMemset(source, 64, 9, 64));
  char user[8] = "xxxxxxx";
  size_t bytes = 0;
  EXPECT_OK(acltdtDequeueData(queue, target, 64, &bytes, user, sizeof(user), 0));
  EXPECT_EQ(bytes, 64u);
  EXPECT_STREQ(user, "user");
  EXPECT_EQ(user[7], 0);
  unsigned char host[64];
  ASSERT_OK(aclrtMemcpy(host, 64, target, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(host[63], 7);
}

TEST_F(MessageQueue, QUE_04_WrongSizesAreRefusedAndLoseNoMessage) {
  const uint32_t queue = NewQueue();
  char data[100] = {};
  EXPECT_CODE(100000, acltdtEnqueueData(queue, data, 0, nullptr, 0, 0, 0));
  EXPECT_CODE(100000, acltdtEnqueueData(queue, data, 4, data, 97, 0, 0));
  EXPECT_CODE(100000, acltdtEnqueueData(queue, data, 4, nullptr, 1, 0, 0));
  EXPECT_CODE(100000, acltdtEnqueueData(queue, data, 4, nullptr, 0, 0, 1));
  EXPECT_CODE(107000, acltdtEnqueueData(queue, reinterpret_cast<void*>(0x10), 4, nullptr, 0, 0, 0));
  EXPECT_OK(acltdtEnqueueData(queue, data, 100, data, 96, 0, 0));
  size_t bytes = 0;
  EXPECT_CODE(100000, acltdtDequeueData(queue, data, 99, &bytes, nullptr, 0, 0));
  EXPECT_EQ(bytes, 100u);  // says how much room is needed
  EXPECT_OK(acltdtDequeueData(queue, data, 100, &bytes, nullptr, 0, 0));
}

TEST_F(MessageQueue, QUE_05_ARouteMovesWhatIsThereAndWhatComes) {
  const uint32_t source = NewQueue(4), left = NewQueue(4), right = NewQueue(4);
  EXPECT_OK(Send(source, 1));
  EXPECT_OK(Bind({{source, left}, {source, right}}));
  EXPECT_OK(Send(source, 2));
  for (uint32_t queue : {left, right}) {
    EXPECT_EQ(Receive(queue), 1);
    EXPECT_EQ(Receive(queue), 2);
    EXPECT_EQ(Receive(queue), -1);
  }
  EXPECT_EQ(Receive(source), -1);
  EXPECT_OK(Bind({{source, left}}, nullptr, true));
  EXPECT_OK(Send(source, 3));
  EXPECT_EQ(Receive(left), -1);
  EXPECT_EQ(Receive(right), 3);
}

TEST_F(MessageQueue, QUE_05_AFullDestinationHoldsBackTheOthersAndLosesNothing) {
  const uint32_t source = NewQueue(2), left = NewQueue(2), right = NewQueue(8);
  EXPECT_OK(Bind({{source, left}, {source, right}}));
  for (int32_t i = 0; i < 4; ++i) EXPECT_OK(Send(source, i));  // two in the source now
  EXPECT_CODE(207014, Send(source, 4));
  EXPECT_EQ(Receive(right), 0);
  EXPECT_EQ(Receive(right), 1);
  EXPECT_EQ(Receive(right), -1);
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(Receive(left), i);
  EXPECT_EQ(Receive(right), 2);
  EXPECT_EQ(Receive(right), 3);
}

TEST_F(MessageQueue, QUE_05_MessagesPassAChainOfRoutesBetweenThreads) {
  const uint32_t first = NewQueue(2), second = NewQueue(2), third = NewQueue(2);
  EXPECT_OK(Bind({{first, second}, {second, third}}));
  std::thread sender([&] {
    for (int32_t i = 0; i < 200; ++i) ASSERT_OK(Send(first, i, -1));
  });
  for (int32_t i = 0; i < 200; ++i) ASSERT_EQ(Receive(third, -1), i);
  sender.join();
}

TEST_F(MessageQueue, QUE_06_RoutesThatCannotBeBoundAreToldByTheirStatus) {
  const uint32_t first = NewQueue(), second = NewQueue(), third = NewQueue();
  std::vector<int32_t> statuses;
  EXPECT_CODE(100000, Bind({{first, second}, {first, 4711}, {second, third}}, &statuses));
  EXPECT_EQ(statuses, (std::vector<int32_t>{1, 0, 1}));
  EXPECT_CODE(100000, Bind({{third, first}}));  // a circle
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("circle"), std::string::npos);
  EXPECT_CODE(100000, Bind({{first, first}}));
  EXPECT_CODE(100000, Bind({{first, second}}));  // twice
  EXPECT_CODE(100000, Bind({}));
  EXPECT_OK(Bind({{first, second}}, nullptr, true));
  EXPECT_CODE(100000, Bind({{first, second}}, nullptr, true));
}

TEST_F(MessageQueue, QUE_07_QueriesFindRoutesByTheirEnds) {
  const uint32_t first = NewQueue(), second = NewQueue(), third = NewQueue();
  EXPECT_OK(Bind({{first, second}, {first, third}, {second, third}}));
  const auto found = [&](acltdtQueueRouteQueryMode mode, uint32_t source, uint32_t destination) {
    acltdtQueueRouteQueryInfo* info = acltdtCreateQueueRouteQueryInfo();
    acltdtQueueRouteList* list = acltdtCreateQueueRouteList();
    EXPECT_CODE(100000, acltdtQueryQueueRoutes(info, list));  // nothing is asked
    EXPECT_OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, sizeof(mode),
                                           &mode));
    EXPECT_CODE(100000, acltdtQueryQueueRoutes(info, list));
    EXPECT_OK(
        acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, 4, &source));
    EXPECT_OK(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32, 4,
                                           &destination));
    EXPECT_OK(acltdtQueryQueueRoutes(info, list));
    const size_t count = acltdtGetQueueRouteNum(list);
    EXPECT_OK(acltdtDestroyQueueRouteList(list));
    EXPECT_OK(acltdtDestroyQueueRouteQueryInfo(info));
    return count;
  };
  EXPECT_EQ(found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC, first, 0), 2u);
  EXPECT_EQ(found(ACL_TDT_QUEUE_ROUTE_QUERY_DST, 0, third), 2u);
  EXPECT_EQ(found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, second, third), 1u);
  EXPECT_EQ(found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, third, second), 0u);
  EXPECT_OK(acltdtDestroyQueue(third));  // its routes end with it
  EXPECT_EQ(found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC, first, 0), 1u);
}

}  // namespace
}  // namespace acltape::device
