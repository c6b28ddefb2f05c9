// Work on a stream whose memory the arguments of the call name, in themselves or in a struct that
// they point to: reductions, random numbers, choices of a model, collectives and messages.
#pragma once

#include <cstdint>

#include "recorder/acl/interface.h"

namespace acltape::acl_agent {

struct Thread;

// The number of bytes that an argument stands for; UINT64_MAX: to the end of its block.
uint64_t RangeBytes(const ArgumentRule& rule, const uint64_t* values);

// Keeps what the work will read and no recorded call wrote. Called before the call, because the
// work may write over it.
void KeepInputsOfWork(Thread& thread, const CallInfo& info, const uint64_t* values,
                      const OpenCall& open, uint64_t stream);
// Keeps what the work has written, or notes what work of a graph reads and writes.
void KeepWork(Thread& thread, const CallInfo& info, const uint64_t* values, const OpenCall& open,
              uint64_t stream, uint64_t model_id);

// Encodes the numbers of the parts of HcclBatchSendRecv: kItemNumbers of each, in the order of
// meaning/hccl_numbers.h.
void EncodeItems(Thread& thread, const ArgumentRule& rule, uint64_t items, const uint64_t* values);
// Encodes the memory of the parts, as arguments after those of the call: a list of what is sent and
// one of what is received. Each has a place for every part, which is empty where the part is of the
// other list.
void EncodeItemMemory(Thread& thread, const ArgumentRule& rule, uint64_t items,
                      const uint64_t* values);

// Encodes the words of aclrtRandomNumTaskInfo.
void EncodeRandomTask(Thread& thread, uint64_t task_info);
// Encodes the memory that the task names, as arguments after those of the call.
void EncodeRandomMemory(Thread& thread, uint64_t task_info);

}  // namespace acltape::acl_agent
