// The parts that programs of two ranks share: processes, communicators, memory.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define CHECK(call)                                                                     \
  do {                                                                                  \
    if (const auto code = (call)) {                                                     \
      std::printf("%s: %d: %s\n", #call, static_cast<int>(code), aclGetRecentErrMsg()); \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

namespace ranks_program {

// Lies in memory that both processes have.
struct Board {
  HcclRootInfo roots[2];
  volatile int roots_are_there;
};

// Two processes from here on, each with a device of its own.
struct Ranks {
  Board* board = nullptr;
  uint32_t rank = 0;

  Ranks() {
    board = static_cast<Board*>(
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    rank = fork() == 0 ? 1 : 0;
    CHECK(aclInit(nullptr));
    CHECK(aclrtSetDevice(static_cast<int32_t>(rank)));
    if (rank == 0) {
      for (HcclRootInfo& root : board->roots) CHECK(HcclGetRootInfo(&root));
      board->roots_are_there = 1;
    }
    while (board->roots_are_there == 0) usleep(100);
  }

  // One of two communicators of both ranks.
  HcclComm Join(int which) const {
    HcclComm comm = nullptr;
    CHECK(HcclCommInitRootInfo(2, &board->roots[which], rank, &comm));
    return comm;
  }

  // Waits for the other process, if it is a child; its exit code.
  int End() const {
    int status = 0;
    if (rank == 0) wait(&status);
    return status == 0 ? 0 : 1;
  }
};

inline float* Allocate(uint64_t bytes) {
  void* memory = nullptr;
  CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemset(memory, bytes, 0, bytes));
  return static_cast<float*>(memory);
}

}  // namespace ranks_program
