// A task queue as frameworks have one: two threads call first phases and make tensors, a third
// launches what they prepared and destroys the tensors at once. An executor is prepared in one
// thread and launched in another, and its address is used again by whichever thread is next.
//
//   task_queue
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int kCount = 64;
constexpr int kRounds = 40;
constexpr size_t kBytes = kCount * sizeof(float);

class Queue {
 public:
  Queue() : thread_([this] { Run(); }) {}
  ~Queue() {
    Push({});
    thread_.join();
  }
  void Push(std::function<void()> task) {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [this] { return tasks_.size() < kDepth; });
    tasks_.push_back(std::move(task));
    work_.notify_one();
  }

 private:
  static constexpr size_t kDepth = 16;
  void Run() {
    CHECK_ACL(aclrtSetDevice(0));
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        work_.wait(lock, [this] { return !tasks_.empty(); });
        task = std::move(tasks_.front());
        tasks_.pop_front();
        room_.notify_all();
      }
      if (!task) return;
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable room_, work_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

// total = total + 0.5 * value; value = value * 1.25, again and again.
void Produce(Queue& queue, float first, std::vector<float>* result) {
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  void* value = MallocDevice(kBytes);
  void* total = MallocDevice(kBytes);
  const std::vector<float> begin(kCount, first);
  const std::vector<float> zero(kCount, 0);
  CHECK_ACL(aclrtMemcpy(value, kBytes, begin.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtMemcpy(total, kBytes, zero.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  for (int round = 0; round < kRounds; ++round) {
    {
      aclTensor* self = MakeVector(kCount, total);
      aclTensor* other = MakeVector(kCount, value);
      aclScalar* alpha = MakeScalar(0.5f);
      uint64_t bytes = 0;
      aclOpExecutor* executor = nullptr;
      CHECK_ACL(aclnnInplaceAddGetWorkspaceSize(self, other, alpha, &bytes, &executor));
      queue.Push([=] {
        CHECK_ACL(aclnnInplaceAdd(NewWorkspace(bytes), bytes, executor, stream));
        CHECK_ACL(aclDestroyTensor(self));
        CHECK_ACL(aclDestroyTensor(other));
        CHECK_ACL(aclDestroyScalar(alpha));
      });
    }
    {
      aclTensor* self = MakeVector(kCount, value);
      aclScalar* factor = MakeScalar(1.25f);
      uint64_t bytes = 0;
      aclOpExecutor* executor = nullptr;
      CHECK_ACL(aclnnInplaceMulsGetWorkspaceSize(self, factor, &bytes, &executor));
      queue.Push([=] {
        CHECK_ACL(aclnnInplaceMuls(NewWorkspace(bytes), bytes, executor, stream));
        CHECK_ACL(aclDestroyTensor(self));
        CHECK_ACL(aclDestroyScalar(factor));
      });
    }
  }
  // The queue is empty when a task that was put in last has run.
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  queue.Push([&] {
    std::lock_guard<std::mutex> lock(mutex);
    is_done = true;
    done.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  done.wait(lock, [&] { return is_done; });
  CHECK_ACL(aclrtSynchronizeStream(stream));
  result->resize(kCount);
  CHECK_ACL(aclrtMemcpy(result->data(), kBytes, total, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtFree(value));
  CHECK_ACL(aclrtFree(total));
  CHECK_ACL(aclrtDestroyStream(stream));
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  std::vector<float> one, two;
  {
    Queue queue;
    std::thread other(Produce, std::ref(queue), 2.0f, &two);
    Produce(queue, 1.0f, &one);
    other.join();
  }
  std::printf("one: %.9g %.9g\n", one.front(), one.back());
  std::printf("two: %.9g %.9g\n", two.front(), two.back());
  FreeWorkspaces();
  CHECK_ACL(aclFinalize());
  return 0;
}
