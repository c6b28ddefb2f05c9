// The state that all scripts of one program share: the homes of its buffers, uploads, memory for
// one leaf at a time, and the question whether the device can run a leaf.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replayer/device/bound_call.h"
#include "replayer/device/device.h"
#include "replayer/engine/lowered_program.h"
#include "replayer/values/contents.h"
#include "replayer/values/verifier.h"

namespace acltape::replayer {

// The homes of a program's buffers: their device addresses while leaves run eagerly. All homes lie
// in one planned arena, in which buffers whose lives do not overlap share memory.
class HomeMemory {
 public:
  struct Need {
    int64_t buffer_id = 0;
    int64_t first_leaf = 0;
    int64_t last_leaf = 0;
  };
  HomeMemory(Device& device, const analyzer::Program& program, const std::vector<Need>& needs);
  // Returns the home of a buffer; null if it has none.
  uint8_t* Find(int64_t buffer_id) const;
  // All homes lie in one block. Returns the offset of a home in it. Throws Error kDevice if the
  // buffer has none.
  int64_t OffsetOf(int64_t buffer_id) const;
  uint8_t* base() const { return arena_.data(); }
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes()); }

 private:
  Block arena_;
  std::unordered_map<int64_t, int64_t> offsets_;
};

// Copies host values to device memory in stream order, through a ring of pinned memory.
class Uploader {
 public:
  explicit Uploader(Device& device);
  // Returns pinned memory for values that are uploaded later. Waits for the stream if the ring is
  // full.
  uint8_t* Reserve(size_t bytes);
  // Copies `bytes` of `values` to `device`.
  void Upload(uint8_t* device, const uint8_t* values, size_t bytes);

 private:
  Device& device_;
  Block ring_;
  size_t used_ = 0;
};

class Execution {
 public:
  Execution(Device& device, const LoweredProgram& lowered, Contents& contents);

  // Asks the device if it can run a kernel leaf, without running it. Returns the most bytes of
  // workspace that one of its calls needs. Throws LeafRefused if it cannot run it.
  uint64_t Probe(int64_t leaf);

  // Returns the reason why the arguments of a kernel leaf cannot be updated in a captured graph;
  // empty if they can. It tries the update on a graph that never runs.
  std::string ProbeUpdate(int64_t leaf);

  // Memory that leaves share which run one after the other on the device's own stream.
  Workspace& workspace() { return workspace_; }
  uint8_t* temporaries() const { return temporaries_.data(); }
  uint8_t* nothing() const { return nothing_.data(); }  // for tensors without elements

  Device& device() { return device_; }
  Uploader& uploader() { return uploader_; }
  const LoweredProgram& lowered() const { return lowered_; }
  const analyzer::Program& program() const { return *lowered_.program; }
  Contents& contents() { return contents_; }

 private:
  Device& device_;
  const LoweredProgram& lowered_;
  Contents& contents_;
  Workspace workspace_;
  Uploader uploader_;
  Block temporaries_;
  Block nothing_;  // the address of tensors without elements
};

// The device refused to run the operator of a leaf. The leaf must then be substituted.
class LeafRefused : public std::runtime_error {
 public:
  LeafRefused(std::string operator_name, const std::string& why)
      : std::runtime_error(why), operator_name_(std::move(operator_name)) {}
  const std::string& operator_name() const { return operator_name_; }

 private:
  std::string operator_name_;
};

}  // namespace acltape::replayer
