// The product that the soft device stands for, and the behaviours that can be chosen.
//
// One product class is chosen and kept to everywhere (rule GAP-05). A profile is a named built-in
// one or a file, named by ACLTAPE_SOFT_PROFILE; single settings come from the environment, which
// stands above the profile. docs/soft_device.md lists the settings. All is read once, at the first
// call into the library; what cannot be understood is reported on stderr in one sentence and
// ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace acltape::device {

// Rule CPY-12: what a copy between devices does without enabled peer access.
enum class PeerCopy : uint8_t { kRefuse, kTaskError, kAllow };

// A release of the toolkit or of the driver. Programs choose their ways by these numbers, so each
// names a release that exists.
struct Version {
  const char* major;
  const char* minor;
  const char* release;
};

struct Profile {
  std::string soc_name = "Ascend910B1";
  Version toolkit = {"9", "0", "0"};
  uint32_t devices = 1;  // those that the program sees
  // The numbers that the machine has for them, if ASCEND_RT_VISIBLE_DEVICES chooses; else empty.
  std::vector<uint32_t> visible;
  uint32_t streams = 1984;      // per device, hidden streams of captures included (STR-05)
  uint32_t events = 65536;      // per device (EVT-17)
  uint32_t notifies = 8192;     // per device (NTF-04)
  uint32_t models = 2048;       // live ones per device (LIM-02)
  uint32_t queues = 1984;       // hardware queues, for the hidden streams of models (EXE-09)
  uint32_t updates = 1048576;   // task updates pending at a time per device (UPD-08)
  uint32_t queue_depth = 2048;  // tasks that a stream holds before submission blocks (STR-04)
  uint64_t memory = uint64_t{64} << 30;  // bytes
  uint64_t host_memory = 0;  // bytes that back it (host_backing.h); 0: what the host has
  uint32_t cube_cores = 24;
  uint32_t vector_cores = 48;
  uint32_t ai_cpu_cores = 6;
  uint64_t l2_bytes = uint64_t{192} << 20;

  // False: kernels, fills and drawn numbers are not carried out, so that the host's path alone is
  // timed. What is on the stream keeps its order otherwise.
  bool computes = true;

  uint32_t generator = 2;  // version of the operators' generator of random numbers (RND-09)

  // Less forgiving than a device has to be.
  uint64_t jitter_seed = 0;   // 0: no jitter
  bool poison = false;        // new and freed memory reads as NaN
  bool exact_blocks = false;  // memory.h, Note [Past a block]
  uint32_t order = 0;         // how many launches run a graph's streams in unlike orders (replay.h)

  // How long releases, and synchronisations without a time-out, wait for work that stands still
  // (standstill.h).
  int64_t release_wait_ns = 10'000'000'000;
  int64_t synchronize_wait_ns = 60'000'000'000;

  // Choices that the rules leave open.
  bool finalize_counts = false;           // INIT-07
  bool synchronize_whole_device = false;  // DEV-10
  // STR-06: codes of calls that create streams, and of captures that need one more.
  aclError no_stream_code = ACL_ERROR_RT_NO_STREAM_RESOURCE;
  aclError no_capture_stream_code = ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
  bool ex_events_counted = false;          // EVT-17
  PeerCopy peer_copy = PeerCopy::kRefuse;  // CPY-12
  bool capture_info_from_source = false;   // CAP-61

  std::vector<std::string> faults;  // texts of the profile file (runtime/device/fault.h)
};

const Profile& GetProfile();

}  // namespace acltape::device
