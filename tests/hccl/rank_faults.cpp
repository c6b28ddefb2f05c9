// Programs of two ranks with one fault each: rank_faults KIND [right]. With "right" the program
// does the same without the fault. A comment "finds" marks the lines that a finding names.
#include <cstring>
#include <string>

#include "tests/hccl/ranks_program.h"

namespace {

constexpr uint64_t kCount = 1000;
constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;
constexpr HcclReduceOp kSum = HCCL_REDUCE_SUM;

struct Program {
  uint32_t rank = 0;
  bool right = false;
  HcclComm comm = nullptr, other = nullptr;
  aclrtStream stream = nullptr, second_stream = nullptr;
  float *a = nullptr, *b = nullptr;

  // True on the rank that does it wrong.
  bool Wrong() const { return rank == 1 && !right; }
  // The fault may leave the stream in an error, which is the program's end.
  void Synchronize() const { aclrtSynchronizeStreamWithTimeout(stream, 10'000); }
};

void Order(const Program& p) {
  if (p.Wrong()) {
    HcclBroadcast(p.b, kCount, kFloat, 0, p.comm, p.stream);  // finds RANK-01
    HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);
  } else {
    HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-01
    HcclBroadcast(p.b, kCount, kFloat, 0, p.comm, p.stream);
  }
  p.Synchronize();
}

void Size(const Program& p) {
  const uint64_t count = p.Wrong() ? kCount - 1 : kCount;
  HcclAllReduce(p.a, p.a, count, kFloat, kSum, p.comm, p.stream);  // finds RANK-02
  p.Synchronize();
}

void Reduction(const Program& p) {
  const HcclReduceOp op = p.Wrong() ? HCCL_REDUCE_MAX : kSum;
  HcclAllReduce(p.a, p.a, kCount, kFloat, op, p.comm, p.stream);  // finds RANK-02
  p.Synchronize();
}

void Missing(const Program& p) {
  for (int i = 0; i < 3; ++i) {
    if (p.Wrong() && i == 2) break;
    HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-03
  }
  p.Synchronize();
}

void Died(const Program& p) {
  HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);
  p.Synchronize();
  if (p.Wrong()) _exit(1);
  HcclAllGather(p.a, p.b, kCount, kFloat, p.comm, p.stream);  // finds RANK-03
  p.Synchronize();
}

void Graph(const Program& p) {
  aclmdlRI model = nullptr;
  if (!p.Wrong()) CHECK(aclmdlRICaptureBegin(p.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-04
  if (!p.Wrong()) {
    CHECK(aclmdlRICaptureEnd(p.stream, &model));
    aclmdlRIExecuteAsync(model, p.stream);
  }
  p.Synchronize();
}

// Two graphs of equal collectives; a rank executes the second one first.
void Captures(const Program& p) {
  aclmdlRI models[2] = {};
  float* memory[] = {p.a, p.b};
  for (int i = 0; i < 2; ++i) {
    CHECK(aclmdlRICaptureBegin(p.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    HcclAllReduce(memory[i], memory[i], kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-11
    CHECK(aclmdlRICaptureEnd(p.stream, &models[i]));
  }
  aclmdlRIExecuteAsync(models[p.Wrong() ? 1 : 0], p.stream);
  aclmdlRIExecuteAsync(models[p.Wrong() ? 0 : 1], p.stream);
  p.Synchronize();
}

void Communicators(const Program& p) {
  HcclComm first = p.Wrong() ? p.other : p.comm;
  HcclComm second = p.Wrong() ? p.comm : p.other;
  HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, first, p.stream);   // finds RANK-05
  HcclAllReduce(p.b, p.b, kCount, kFloat, kSum, second, p.stream);  // finds RANK-05
  p.Synchronize();
}

// The same order of calls as in Communicators, but each communicator has a stream of its own.
void Streams(const Program& p) {
  HcclComm comms[] = {p.comm, p.other};
  aclrtStream streams[] = {p.stream, p.second_stream};
  float* memory[] = {p.a, p.b};
  for (int i = 0; i < 2; ++i) {
    const int which = p.rank == 1 ? 1 - i : i;
    HcclAllReduce(memory[which], memory[which], kCount, kFloat, kSum, comms[which], streams[which]);
  }
  p.Synchronize();
  CHECK(aclrtSynchronizeStream(p.second_stream));
}

void Message(const Program& p) {
  if (p.rank == 0) {
    HcclSend(p.a, kCount, kFloat, 1, p.comm, p.stream);  // finds RANK-06
  } else {
    HcclRecv(p.b, p.Wrong() ? kCount / 2 : kCount, kFloat, 0, p.comm, p.stream);  // finds RANK-06
  }
  p.Synchronize();
}

void Unanswered(const Program& p) {
  if (p.rank == 0) {
    HcclSend(p.a, kCount, kFloat, 1, p.comm, p.stream);
    HcclSend(p.a, kCount, kFloat, 1, p.comm, p.stream);  // finds RANK-06
  } else {
    HcclRecv(p.b, kCount, kFloat, 0, p.comm, p.stream);
    if (p.right) HcclRecv(p.b, kCount, kFloat, 0, p.comm, p.stream);
  }
  p.Synchronize();
}

// Each rank sends two parts to the other one, all at once. The first is of 100 elements.
void Exchange(const Program& p, uint64_t second_count, uint32_t items) {
  const uint32_t other = 1 - p.rank;
  HcclSendRecvItem all[] = {{HCCL_SEND, p.a, 100, kFloat, other},
                            {HCCL_SEND, p.a + 100, kCount, kFloat, other},
                            {HCCL_RECV, p.b, 100, kFloat, other},
                            {HCCL_RECV, p.b + 100, second_count, kFloat, other}};
  HcclBatchSendRecv(all, items, p.comm, p.stream);  // finds RANK-06
  p.Synchronize();
}

void Batch(const Program& p) { Exchange(p, p.Wrong() ? kCount - 1 : kCount, 4); }

void Partner(const Program& p) { Exchange(p, kCount, p.Wrong() ? 3 : 4); }

void Matrix(const Program& p) {
  const uint64_t counts[] = {10, p.Wrong() ? uint64_t{21} : 20, 30, 40};
  HcclAlltoAllVC(p.a, counts, kFloat, p.b, kFloat, p.comm, p.stream);  // finds RANK-02
  p.Synchronize();
}

void Late(const Program& p) {
  for (int i = 0; i < 12; ++i) {
    CHECK(aclrtMemset(p.b, sizeof(float), 0, sizeof(float)));
    if (p.Wrong()) usleep(20'000);
    HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-09
    p.Synchronize();
  }
}

void Device(const Program& p) {
  for (int i = 0; i < 12; ++i) {
    const auto work = [](void*) { usleep(20'000); };
    if (p.Wrong()) CHECK(aclrtLaunchHostFunc(p.stream, work, nullptr));
    aclrtSynchronizeStream(p.stream);  // finds RANK-09
    HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);
    p.Synchronize();
  }
}

void Unordered(const Program& p) {
  aclrtEvent event = nullptr;
  CHECK(aclrtCreateEvent(&event));
  HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-10
  CHECK(aclrtRecordEvent(event, p.stream));
  if (!p.Wrong()) CHECK(aclrtStreamWaitEvent(p.second_stream, event));
  HcclAllReduce(p.b, p.b, kCount, kFloat, kSum, p.comm, p.second_stream);  // finds RANK-10
  p.Synchronize();
  CHECK(aclrtSynchronizeStream(p.second_stream));
}

// The same inside of a graph with a branch.
void Branches(const Program& p) {
  aclrtEvent fork = nullptr, middle = nullptr, join = nullptr;
  for (aclrtEvent* event : {&fork, &middle, &join}) {
    CHECK(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
  }
  aclmdlRI model = nullptr;
  CHECK(aclmdlRICaptureBegin(p.stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK(aclrtRecordEvent(fork, p.stream));
  CHECK(aclrtStreamWaitEvent(p.second_stream, fork));
  HcclAllReduce(p.a, p.a, kCount, kFloat, kSum, p.comm, p.stream);  // finds RANK-10
  CHECK(aclrtRecordEvent(middle, p.stream));
  if (!p.Wrong()) CHECK(aclrtStreamWaitEvent(p.second_stream, middle));
  HcclAllReduce(p.b, p.b, kCount, kFloat, kSum, p.comm, p.second_stream);  // finds RANK-10
  CHECK(aclrtRecordEvent(join, p.second_stream));
  CHECK(aclrtStreamWaitEvent(p.stream, join));
  CHECK(aclmdlRICaptureEnd(p.stream, &model));
  CHECK(aclmdlRIExecuteAsync(model, p.stream));
  p.Synchronize();
}

constexpr struct {
  const char* kind;
  void (*run)(const Program&);
} kPrograms[] = {{"order", Order},
                 {"size", Size},
                 {"reduction", Reduction},
                 {"missing", Missing},
                 {"died", Died},
                 {"graph", Graph},
                 {"captures", Captures},
                 {"communicators", Communicators},
                 {"streams", Streams},
                 {"message", Message},
                 {"unanswered", Unanswered},
                 {"batch", Batch},
                 {"partner", Partner},
                 {"matrix", Matrix},
                 {"late", Late},
                 {"device", Device},
                 {"unordered", Unordered},
                 {"branches", Branches}};

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const ranks_program::Ranks ranks;
  Program program;
  program.rank = ranks.rank;
  program.right = count > 2 && std::strcmp(words[2], "right") == 0;
  CHECK(aclrtCreateStream(&program.stream));
  CHECK(aclrtCreateStream(&program.second_stream));
  program.comm = ranks.Join(0);
  program.other = ranks.Join(1);
  program.a = ranks_program::Allocate(2 * kCount * sizeof(float));
  program.b = ranks_program::Allocate(2 * kCount * sizeof(float));
  for (const auto& row : kPrograms) {
    if (std::string(words[1]) == row.kind) row.run(program);
  }
  ranks.End();
  return 0;
}
