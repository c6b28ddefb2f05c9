// Carries out the commands of a side on a device that this process has opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/device/bound_call.h"
#include "replayer/device/device.h"
#include "replayer/engine/execution.h"
#include "replayer/sides/call_side.h"

namespace acltape::replayer::sides {

class CallExecutor {
 public:
  // `library` is as for Device, and the same errors are thrown.
  explicit CallExecutor(const std::string& library);

  std::string Description() const { return device_.description(); }
  // Allocates the blocks. Throws CallFailed if there is not enough memory.
  void Prepare(const std::vector<int64_t>& block_bytes);
  // Carries out commands in order. Throws Error kUsage for memory outside of the blocks. Throws
  // Error kDevice if the device refuses an operator, naming the call, and if a call of the
  // interface fails.
  std::vector<SideResult> Perform(const std::vector<SideCommand>& commands);

 private:
  uint8_t* At(const Spot& spot, int64_t bytes, const char* what) const;
  // Returns the address of element 0 of a tensor. Throws if the tensor is not inside its block.
  uint8_t* ElementZero(int block, const storage::Layout& layout) const;
  const uint8_t* Download(const uint8_t* from, int64_t bytes);
  void Do(const PutBytes& put, std::vector<SideResult>& results);
  void Do(const TakeBytes& take, std::vector<SideResult>& results);
  void Do(const MoveBytes& move, std::vector<SideResult>& results);
  void Do(const CallOperator& call, std::vector<SideResult>& results);
  void Do(const TakeDigest& take, std::vector<SideResult>& results);

  Device device_;
  Uploader uploader_;
  Workspace workspace_;
  std::vector<Block> blocks_;
  Block staging_;
};

}  // namespace acltape::replayer::sides
