// The program that the tests of the collector record: no libtorch, only the reference producer.
//
//   recorded_program exit CODE
//   recorded_program loop CALLS            four-element adds in one thread
//   recorded_program threads THREADS CALLS
//   recorded_program steps STEPS           ranges "step" with two calls, inside "epoch"
//   recorded_program payload COUNT BYTES [FILE]   snapshots of random content, one each; keeps its
//   own
//                                                 count of calls in FILE (8 bytes)
//   recorded_program fork CALLS            parent and child record; the child is waited for
//   recorded_program exec CALLS            records, then replaces itself by `loop CALLS`
//   recorded_program outlive               leaves a child behind that records now and then
//   recorded_program outlive-busy          leaves one behind that records without a pause
//   recorded_program torn                  open frame, open range, payload half sent, SIGKILL
//   recorded_program counted FILE          adds for ever, keeping its own count in FILE (8 bytes)
//   recorded_program cost THREADS CALLS   adds, each of which says that a quarter of the thread's
//   time
//                                         was the recorder's
//   recorded_program cost-in-turn THREADS CALLS   the same, one thread after another
//   recorded_program cost-fork CALLS      the same in a parent and a child
//   recorded_program cost-kill CALLS      the same, then SIGKILL
//   recorded_program cost-count FILE      the same for ever, keeping its own count in FILE (8
//   bytes) recorded_program garbage SEED          writes random bytes as records recorded_program
//   sleep SECONDS recorded_program args ...              prints its arguments, copies standard
//   input to output
#include <signal.h>
#include <sys/wait.h>
#include <xxhash.h>

#include <cstdio>
#include <memory>
#include <random>
#include <thread>

#include "tests/recorder/producer.h"

namespace acltape::test {
namespace {

struct Loop {
  explicit Loop(Producer& to) : producer(to) {
    producer.ThreadName("loop");
    producer.Op(0, "aten::add", "Tensor", Producer::kAddSchema);
    a = producer.Birth(16);
    b = producer.Birth(16);
  }
  uint64_t Add() {
    const uint64_t id = producer.NextCallId();
    const uint64_t begin = wire::Tick();
    const uint64_t result = producer.Birth(16, id);
    producer.Call(id, 0, {a, b, result}, signature, 0, 0, begin);
    if (last != 0) producer.Death(last);
    last = result;
    return id;
  }
  Producer& producer;
  const std::string signature = Producer::AddSignature();
  uint64_t a = 0, b = 0, last = 0;
};

void RunLoop(const Arena& arena, long calls) {
  Producer producer(arena);
  if (!producer.claimed()) return;
  Loop loop(producer);
  for (long i = 0; i < calls; ++i) loop.Add();
}

// Returns when the calls are done; `end` is called before the slot is closed.
template <typename End>
void RunCost(const Arena& arena, long calls, const End& end) {
  Producer producer(arena);
  if (!producer.claimed()) return;
  Loop loop(producer);
  for (long i = 0; i < calls; ++i) {
    loop.Add();
    producer.TakeAQuarter(1000);
  }
  end();
}
void RunCost(const Arena& arena, long calls) {
  RunCost(arena, calls, [] {});
}

void RunCostInTurn(const Arena& arena, long threads, long calls) {
  for (long i = 0; i < threads; ++i) {
    std::thread([&] { RunCost(arena, calls); }).join();
    // Until the collector has freed a slot.
    while (arena.slot(0)->state.load() != wire::SlotState::kFree &&
           arena.slot(1)->state.load() != wire::SlotState::kFree) {
      usleep(100);
    }
  }
}

void RunSteps(const Arena& arena, int steps) {
  Producer producer(arena);
  Loop loop(producer);
  producer.ScopeBegin("epoch");
  loop.Add();
  for (int i = 0; i < steps; ++i) {
    producer.ScopeBegin("step");
    loop.Add();
    producer.ScopeBegin("step");  // nested, of the same name: part of the step
    loop.Add();
    producer.ScopeEnd();
    producer.ScopeEnd();
    loop.Add();  // between steps
  }
  producer.ScopeEnd();
}

// Eight bytes of a file, which outlive this process.
volatile uint64_t* CountIn(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0644);
  static_cast<void>(!ftruncate(file, 0) && !ftruncate(file, 8));
  return static_cast<volatile uint64_t*>(
      mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
}

void RunPayloads(const Arena& arena, int count, size_t bytes, volatile uint64_t* counted) {
  Producer producer(arena);
  Loop loop(producer);
  std::mt19937_64 random(7);
  for (int i = 0; i < count; ++i) {
    std::string content(bytes, '\0');
    for (char& c : content) c = static_cast<char>(random());
    const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
    const uint64_t buffer = producer.Birth(bytes);
    producer.Data(hash.low64, hash.high64, content, 100000);
    const uint64_t call = loop.Add();
    if (counted != nullptr) *counted = *counted + 1;
    producer.Snapshot(call, buffer, hash.low64, hash.high64, bytes);
    if (producer.header().stop.load() != 0) return;
  }
}

void RunCounted(const Arena& arena, const char* path) {
  volatile uint64_t* const count = CountIn(path);
  Producer producer(arena);
  Loop loop(producer);
  for (;;) {
    loop.Add();
    *count = *count + 1;
  }
}

void RunCostCounted(const Arena& arena, const char* path) {
  volatile uint64_t* const count = CountIn(path);
  Producer producer(arena);
  Loop loop(producer);
  for (;;) {
    loop.Add();
    producer.TakeAQuarter(1000);
    *count = *count + 1;
    usleep(10);
  }
}

void RunTorn(const Arena& arena) {
  Producer producer(arena);
  Loop loop(producer);
  producer.Op(1, "aten::linear", "", "aten::linear(Tensor a) -> Tensor");
  producer.ScopeBegin("step");
  const uint64_t frame = producer.FrameBegin(1);
  producer.Call(producer.NextCallId(), 0, {loop.a, loop.b, loop.a}, loop.signature, frame);
  const std::string content(1000, 'x');
  wire::DataRecord record{{}, 1, 2, 2000, 0, content.size()};
  producer.Write(wire::RecordKind::kData, record, content);
  producer.Snapshot(2, producer.Birth(2000, 0), 1, 2, 2000);
  raise(SIGKILL);
}

void RunGarbage(const Arena& arena, unsigned seed) {
  Producer producer(arena);
  Loop loop(producer);
  loop.Add();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    uint64_t words[8];
    for (uint64_t& word : words) word = random();
    // Half of the headers are sound, so that bodies are met too.
    if (random() % 2 == 0) {
      const wire::RecordHeader header{static_cast<wire::RecordKind>(random() % 16), 0, 64};
      memcpy(words, &header, sizeof(header));
    }
    producer.Raw(words, sizeof(words));
  }
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int index) { return argc > index ? atol(argv[index]) : 0; };
  if (mode == "exit") return static_cast<int>(number(2));
  if (mode == "sleep") {
    sleep(static_cast<unsigned>(number(2)));
    return 0;
  }
  if (mode == "args") {
    for (int i = 2; i < argc; ++i) printf("[%s]", argv[i]);
    for (int c; (c = getchar()) != EOF;) putchar(c);
    return 0;
  }
  const Arena arena = Arena::OpenFromEnvironment();
  arena.header->torch_processes.fetch_add(1);
  if (mode == "loop") {
    RunLoop(arena, number(2));
  } else if (mode == "threads") {
    std::vector<std::thread> threads;
    for (long i = 0; i < number(2); ++i) threads.emplace_back(RunLoop, arena, number(3));
    for (std::thread& thread : threads) thread.join();
  } else if (mode == "steps") {
    RunSteps(arena, static_cast<int>(number(2)));
  } else if (mode == "payload") {
    RunPayloads(arena, static_cast<int>(number(2)), static_cast<size_t>(number(3)),
                argc > 4 ? CountIn(argv[4]) : nullptr);
  } else if (mode == "fork") {
    RunLoop(arena, number(2));
    usleep(50000);  // the collector frees the slot
    const pid_t child = fork();
    if (child == 0) {
      RunLoop(arena, number(2));
      _exit(0);
    }
    RunLoop(arena, number(2));
    waitpid(child, nullptr, 0);
  } else if (mode == "exec") {
    auto* producer = new Producer(arena);  // never closed: exec ends its image
    Loop loop(*producer);
    for (long i = 0; i < number(2); ++i) loop.Add();
    execl("/proc/self/exe", argv[0], "loop", argv[2], nullptr);
  } else if (mode == "outlive") {
    if (fork() == 0) {
      Producer producer(arena);
      Loop loop(producer);
      for (int i = 0; i < 600 && arena.header->stop.load() == 0; ++i) {
        loop.Add();
        usleep(100000);
      }
      _exit(0);
    }
    usleep(50000);
  } else if (mode == "outlive-busy") {
    if (fork() == 0) {
      alarm(20);  // nobody empties its ring once the recording has ended
      RunLoop(arena, 1000000000);
      _exit(0);
    }
    usleep(50000);
  } else if (mode == "torn") {
    RunTorn(arena);
  } else if (mode == "counted") {
    RunCounted(arena, argv[2]);
  } else if (mode == "cost") {
    std::vector<std::thread> threads;
    for (long i = 0; i < number(2); ++i) {
      threads.emplace_back([&] { RunCost(arena, number(3)); });
    }
    for (std::thread& thread : threads) thread.join();
  } else if (mode == "cost-in-turn") {
    RunCostInTurn(arena, number(2), number(3));
  } else if (mode == "cost-fork") {
    const pid_t child = fork();
    RunCost(arena, number(2));
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  } else if (mode == "cost-kill") {
    RunCost(arena, number(2), [] { raise(SIGKILL); });
  } else if (mode == "cost-count") {
    RunCostCounted(arena, argv[2]);
  } else if (mode == "garbage") {
    RunGarbage(arena, static_cast<unsigned>(number(2)));
  } else {
    return 64;
  }
  return 0;
}

}  // namespace
}  // namespace acltape::test

int main(int argc, char** argv) { return acltape::test::Main(argc, argv); }
