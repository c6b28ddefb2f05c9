// The work that one call gives to a stream: parts that go on together until all have ended.
//
// Note [Parts]
// A part goes on as far as it can without waiting, and says by that whether it has ended. So a
// stream that has a single task waits between two attempts, and a graph tries its other streams
// meanwhile: two communicators get on in any order (HCL-06). A captured operation runs again with
// each execution, so a part begins anew each time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/hccl/communicator.h"
#include "runtime/kernel_memory.h"

namespace acltape::hccl {

class Part {
 public:
  explicit Part(Communicator& communicator) : communicator_(communicator) {}
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // Before each execution.
  virtual void Begin() = 0;
  // True when it has ended. The communicator may fail in it.
  virtual bool Advance() = 0;
  // The execution ends without the part having ended.
  virtual void GiveUp() = 0;

  // "collective 17, HcclAllReduce(count 4, fp32, sum)".
  virtual std::string Describe() const = 0;
  // The ranks that are known to wait in it, this one among them.
  virtual std::vector<uint32_t> Waiting() const = 0;
  // The ranks that it waits for, and how far they are: "has come to 16 collectives".
  struct Missing {
    uint32_t rank;
    std::string how_far;
  };
  virtual std::vector<Missing> WaitsFor() const = 0;

 protected:
  Communicator& communicator_;
};

class Operation {
 public:
  Operation(std::shared_ptr<Communicator> communicator, const char* name)
      : communicator_(std::move(communicator)), name_(name) {}

  void Add(std::unique_ptr<Part> part) { parts_.push_back(std::move(part)); }
  // Memory that it reads, and memory that it writes. Nothing is added for no bytes.
  void Reads(const void* first, uint64_t bytes, const char* argument);
  void Writes(void* first, uint64_t bytes, const char* argument);

  // Gives it to the stream, in every case.
  static HcclResult Launch(std::unique_ptr<Operation> operation, aclrtStream stream);

  // For a task that communicates in the middle of its work, with an operation in `bound`: the
  // entries of a launch (runtime/waiting_launch.h).
  static aclError Run(void* bound);
  static bool Ready(void* bound);

 private:
  static void Drop(void* bound);

  void Begin();
  // True when the execution has ended; result_ then says how.
  bool Advance();
  bool End(aclError result, const std::string& message);
  // Looks for what nobody rings: ranks that have left or ended, and time.
  void LookForMissing();
  aclError Result();

  const std::shared_ptr<Communicator> communicator_;
  const char* name_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<SoftMemoryUse> uses_;
  std::vector<SoftOutput> outputs_;

  // State of the execution that runs.
  bool running_ = false;
  std::vector<bool> ended_;
  int64_t begin_ns_ = 0, looked_ns_ = 0;
  std::optional<aclError> result_;
  std::string message_;
};

}  // namespace acltape::hccl
