// The product that the soft device stands for, and the environment that changes it.
//
// One product class is chosen and kept to everywhere (rule GAP-05): a server-class part with these
// limits. Lower them to see a program run out of a resource:
//
//   ACLTAPE_SOFT_DEVICES=N      number of devices (1 to 64; default 1)
//   ACLTAPE_SOFT_STREAMS=N      streams per device, hidden streams of captures included (STR-05)
//   ACLTAPE_SOFT_EVENTS=N       events per device (EVT-17); Ex events are not counted
//   ACLTAPE_SOFT_NOTIFIES=N     notifies per device (NTF-04)
//   ACLTAPE_SOFT_MODELS=N       live models per device (LIM-02)
//   ACLTAPE_SOFT_MEMORY=BYTES   device memory; suffixes K, M, G are powers of 1024
//
// and make its behaviour less forgiving:
//
//   ACLTAPE_SOFT_JITTER=SEED    delays tasks and reorders graph tasks within what the program's own
//                               order allows, by a seeded sequence: shows races (0 is off)
//   ACLTAPE_SOFT_POISON=1       fills new and freed memory with bytes that read as NaN
//   ACLTAPE_SOFT_CAPTURE_INFO=source
//                               aclmdlRICaptureGetInfo keeps reporting ACTIVE after an invalidation
//                               by events (the other reading of rule CAP-61)
//
// The environment is read once, at the first call. A value that is not a number is reported on
// stderr and ignored.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acltape::device {

struct Profile {
  const char* soc_name = "Ascend910B1";
  uint32_t devices = 1;
  uint32_t streams = 1984;
  uint32_t events = 65536;
  uint32_t notifies = 8192;
  uint32_t models = 2048;
  uint32_t queue_depth = 2048;  // tasks that a stream holds before submission blocks (STR-04)
  uint64_t memory = uint64_t{64} << 30;
  uint32_t cube_cores = 24;
  uint32_t vector_cores = 48;
  uint32_t ai_cpu_cores = 6;
  uint64_t l2_bytes = uint64_t{192} << 20;
  uint64_t jitter_seed = 0;  // 0: no jitter
  bool poison = false;
  bool capture_info_from_source = false;
};

const Profile& GetProfile();

}  // namespace acltape::device
