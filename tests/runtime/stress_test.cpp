// Eight threads use thirty-two streams at random: kernels, events, values, copies, host functions,
// captures with forks, executions, destroys. Whatever is submitted carries what must hold when it
// runs, and a checker collects what did not.
//
//   STRESS_SECONDS=N   how long (default 3)
//   STRESS_SEED=N      the draws of a former run; the interleaving is the machine's own
#include <cstdlib>
#include <memory>
#include <random>
#include <shared_mutex>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr int kThreads = 8;
constexpr size_t kStreams = 32;
constexpr size_t kEvents = 48;
constexpr size_t kMostModels = 6;  // per thread

class Checker {
 public:
  void Violated(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (violations_.size() < 20) violations_.push_back(what);
    ++count_;
  }
  size_t count() const {
    std::lock_guard lock(mutex_);
    return count_;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& violation : violations_) text += "\n  " + violation;
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> violations_;
  size_t count_ = 0;
};

// One life of a stream. Lives on after the stream, for those who wait for its records.
struct Life {
  Life(Checker* its_checker, size_t its_slot) : checker(its_checker), slot(its_slot) {}

  Checker* const checker;
  const size_t slot;
  std::mutex mutex;  // held over drawing a place and submitting
  aclrtStream stream = nullptr;
  uint64_t submitted = 0;  // guarded by the mutex
  // `ran` and `detail` say what ran. Tasks of one stream exclude each other, so `detail` needs no
  // lock: if they did not, ThreadSanitizer would say so.
  uint64_t detail = 0;
  std::atomic<uint64_t> ran{0};
  uint64_t* cells = nullptr;  // device memory: written, and its copy
};

struct Step {
  Life* life;
  uint64_t place;

  // The task at this place runs: all earlier ones have, and no later one.
  void Run() const {
    if (life->detail != place) {
      life->checker->Violated("stream " + std::to_string(life->slot) + ": task " +
                              std::to_string(place) + " ran after " + std::to_string(life->detail) +
                              " others");
    }
    life->detail = place + 1;
    life->ran.store(place + 1, std::memory_order_relaxed);
  }
};

// A record: what had been submitted before it, and a note that only who waited may read.
struct Point {
  Life* life = nullptr;
  uint64_t place = 0;
  uint64_t note = 0;
};

struct EventSlot {
  std::mutex mutex;  // held over recording and waiting, so that a wait knows what it waits for
  aclrtEvent event = nullptr;
  std::shared_ptr<Point> newest;
};

// A model and the memory of its graph: a -> (b on the fork, c) -> d.
struct Graph {
  Checker* checker = nullptr;
  aclmdlRI model = nullptr;
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  uint64_t d = 0;

  void Expect(bool holds, const char* what) {
    if (!holds) checker->Violated(std::string("graph: ") + what);
  }
};

// Runs `body` in the stream's order.
template <typename Body>
aclError LaunchBody(aclrtStream stream, const char* name, Body body) {
  return SoftLaunchKernel(
      stream, name,
      [](void* bound) -> aclError {
        (*static_cast<Body*>(bound))();
        return 0;
      },
      [](void* bound) { delete static_cast<Body*>(bound); }, new Body(std::move(body)));
}

class World {
 public:
  World() : slots_(kStreams), events_(kEvents) {
    for (size_t i = 0; i < kStreams; ++i) slots_[i].life = NewLife(i);
    for (EventSlot& slot : events_) slot.event = NewEvent();
  }

  Checker& checker() { return checker_; }
  uint64_t operations() const { return operations_.load(); }

  // Does one thing drawn by `random`.
  void Act(std::mt19937_64& random, std::vector<std::unique_ptr<Graph>>& graphs) {
    struct Action {
      int weight;
      void (World::*act)(std::mt19937_64&, std::vector<std::unique_ptr<Graph>>&);
    };
    constexpr Action kActions[] = {
        {30, &World::Kernel}, {12, &World::Record},   {12, &World::Wait},
        {6, &World::Values},  {4, &World::Host},      {4, &World::Synchronise},
        {4, &World::Query},   {3, &World::NewEvents}, {1, &World::NewStream},
        {3, &World::Capture}, {8, &World::Execute},   {2, &World::DestroyGraph},
    };
    int sum = 0;
    for (const Action& action : kActions) sum += action.weight;
    int draw = static_cast<int>(random() % static_cast<uint64_t>(sum));
    for (const Action& action : kActions) {
      draw -= action.weight;
      if (draw >= 0) continue;
      (this->*action.act)(random, graphs);
      break;
    }
    operations_.fetch_add(1, std::memory_order_relaxed);
  }

  // All submitted work has run.
  void Finish() {
    for (Slot& slot : slots_) {
      EXPECT_OK(aclrtSynchronizeStream(slot.life->stream));
      if (slot.life->detail != slot.life->submitted) checker_.Violated("tasks were lost");
    }
  }

 private:
  using Graphs = std::vector<std::unique_ptr<Graph>>;

  struct Slot {
    std::shared_mutex mutex;  // exclusive while the stream is replaced or captured
    Life* life = nullptr;
  };

  Life* NewLife(size_t slot) {
    Life* life = nullptr;
    {
      std::lock_guard lock(lives_mutex_);
      life = lives_.emplace_back(std::make_unique<Life>(&checker_, slot)).get();
    }
    EXPECT_OK(aclrtCreateStream(&life->stream));
    void* cells = nullptr;
    EXPECT_OK(aclrtMalloc(&cells, 16, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_OK(aclrtMemset(cells, 16, 0, 16));
    life->cells = static_cast<uint64_t*>(cells);
    return life;
  }

  static aclrtEvent NewEvent() {
    aclrtEvent event = nullptr;
    EXPECT_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return event;
  }

  // Calls `body(life)` with a random stream, which stays while others use it too.
  template <typename Body>
  void WithStream(std::mt19937_64& random, Body body) {
    Slot& slot = slots_[random() % kStreams];
    std::shared_lock stays(slot.mutex);
    std::lock_guard lock(slot.life->mutex);
    body(*slot.life);
  }

  // A checking task at the next place of the stream; its mutex is held.
  template <typename Body>
  void Submit(Life& life, Body body) {
    Step step{&life, life.submitted++};
    EXPECT_OK(LaunchBody(life.stream, "step", [step, body] {
      step.Run();
      body();
    }));
  }

  void Kernel(std::mt19937_64& random, Graphs&) {
    WithStream(random, [&](Life& life) {
      for (uint64_t left = random() % 8 + 1; left > 0; --left) Submit(life, [] {});
    });
  }

  void Record(std::mt19937_64& random, Graphs&) {
    EventSlot& event = events_[random() % kEvents];
    std::lock_guard lock(event.mutex);
    WithStream(random, [&](Life& life) {
      auto point = std::make_shared<Point>();
      uint64_t note = random();
      point->life = &life;
      Submit(life, [point, note] { point->note = note; });
      point->place = life.submitted;
      EXPECT_OK(aclrtRecordEvent(event.event, life.stream));
      event.newest = point;
    });
  }

  void Wait(std::mt19937_64& random, Graphs&) {
    EventSlot& event = events_[random() % kEvents];
    std::lock_guard lock(event.mutex);
    WithStream(random, [&](Life& life) {
      EXPECT_OK(aclrtStreamWaitEvent(life.stream, event.event));
      std::shared_ptr<Point> point = event.newest;
      if (point == nullptr) return;
      Checker* checker = &checker_;
      Submit(life, [point, checker] {
        // Without the wait the note would be a data race, or nought.
        if (point->note == 0 || point->life->ran.load(std::memory_order_relaxed) < point->place) {
          checker->Violated("a wait passed before its record");
        }
      });
    });
  }

  void Values(std::mt19937_64& random, Graphs&) {
    WithStream(random, [&](Life& life) {
      uint64_t value = random();
      uint64_t* cells = life.cells;
      EXPECT_OK(aclrtValueWrite(cells, value, 0, life.stream));
      EXPECT_OK(aclrtMemcpyAsync(cells + 1, 8, cells, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, life.stream));
      Checker* checker = &checker_;
      Submit(life, [cells, value, checker] {
        if (cells[1] != value) checker->Violated("a copy did not see the value before it");
      });
    });
  }

  void Host(std::mt19937_64& random, Graphs&) {
    WithStream(random, [&](Life& life) {
      auto* step = new Step{&life, life.submitted++};
      EXPECT_OK(aclrtLaunchHostFunc(
          life.stream,
          [](void* data) {
            std::unique_ptr<Step> owned(static_cast<Step*>(data));
            owned->Run();
          },
          step));
    });
  }

  void Synchronise(std::mt19937_64& random, Graphs&) {
    if (random() % 2 == 0) {
      EventSlot& slot = events_[random() % kEvents];
      std::lock_guard lock(slot.mutex);
      EXPECT_OK(aclrtSynchronizeEvent(slot.event));
      if (slot.newest == nullptr) return;
      if (slot.newest->note == 0) checker_.Violated("an event was reached before its record");
      return;
    }
    Slot& slot = slots_[random() % kStreams];
    std::shared_lock stays(slot.mutex);
    uint64_t before = 0;
    {
      std::lock_guard lock(slot.life->mutex);
      before = slot.life->submitted;
    }
    EXPECT_OK(aclrtSynchronizeStream(slot.life->stream));
    if (slot.life->ran.load() < before) checker_.Violated("synchronise returned too early");
  }

  void Query(std::mt19937_64& random, Graphs&) {
    WithStream(random, [&](Life& life) {
      aclrtStreamStatus status;
      EXPECT_OK(aclrtStreamQuery(life.stream, &status));
      bool complete = status == ACL_STREAM_STATUS_COMPLETE;
      if (complete && life.ran.load() != life.submitted) {
        checker_.Violated("a query found the stream complete too early");
      }
      aclmdlRICaptureStatus capture;
      EXPECT_OK(aclmdlRICaptureGetInfo(life.stream, &capture, nullptr));
      EXPECT_EQ(capture, kNone);
    });
  }

  void NewEvents(std::mt19937_64& random, Graphs&) {
    EventSlot& slot = events_[random() % kEvents];
    std::lock_guard lock(slot.mutex);
    EXPECT_OK(aclrtDestroyEvent(slot.event));  // waits for it may be pending
    slot.event = NewEvent();
    slot.newest = nullptr;
  }

  void NewStream(std::mt19937_64& random, Graphs&) {
    size_t index = random() % kStreams;
    Slot& slot = slots_[index];
    std::unique_lock alone(slot.mutex);
    Life& old_life = *slot.life;
    EXPECT_OK(aclrtDestroyStream(old_life.stream));  // runs what is queued
    if (old_life.detail != old_life.submitted) checker_.Violated("destroy lost tasks");
    EXPECT_OK(aclrtFree(old_life.cells));
    slot.life = NewLife(index);
  }

  void Capture(std::mt19937_64& random, Graphs& graphs) {
    if (graphs.size() >= kMostModels) return;
    size_t first = random() % kStreams;
    size_t second = random() % kStreams;
    if (first == second) return;
    // In order of their numbers: others take two streams as well.
    std::unique_lock low(slots_[std::min(first, second)].mutex);
    std::unique_lock high(slots_[std::max(first, second)].mutex);
    aclrtStream origin = slots_[first].life->stream;
    aclrtStream branch = slots_[second].life->stream;
    auto graph = std::make_unique<Graph>();
    Graph* g = graph.get();
    g->checker = &checker_;
    aclrtEvent fork = NewEvent();
    aclrtEvent join = NewEvent();
    EXPECT_OK(aclmdlRICaptureBegin(origin, kRelaxed));
    EXPECT_OK(LaunchBody(origin, "a", [g] {
      g->Expect(g->a == g->d && g->b == g->d && g->c == g->d, "two replays overlap");
      ++g->a;
    }));
    EXPECT_OK(aclrtRecordEvent(fork, origin));
    EXPECT_OK(aclrtStreamWaitEvent(branch, fork));
    EXPECT_OK(LaunchBody(branch, "b", [g] {
      g->Expect(g->a == g->b + 1, "the fork did not wait");
      ++g->b;
    }));
    EXPECT_OK(LaunchBody(origin, "c", [g] { ++g->c; }));
    EXPECT_OK(aclrtRecordEvent(join, branch));
    EXPECT_OK(aclrtStreamWaitEvent(origin, join));
    EXPECT_OK(LaunchBody(origin, "d", [g] {
      g->Expect(g->b == g->a && g->c == g->a, "the join did not wait");
      ++g->d;
    }));
    EXPECT_OK(aclmdlRICaptureEnd(origin, &g->model));
    EXPECT_OK(aclrtDestroyEvent(fork));
    EXPECT_OK(aclrtDestroyEvent(join));
    graphs.push_back(std::move(graph));
  }

  void Execute(std::mt19937_64& random, Graphs& graphs) {
    if (graphs.empty()) return;
    Graph& graph = *graphs[random() % graphs.size()];
    WithStream(random, [&](Life& life) {
      Submit(life, [] {});
      EXPECT_OK(aclmdlRIExecuteAsync(graph.model, life.stream));
      Submit(life, [] {});
    });
  }

  void DestroyGraph(std::mt19937_64& random, Graphs& graphs) {
    if (graphs.empty()) return;
    size_t index = random() % graphs.size();
    Graph& graph = *graphs[index];
    EXPECT_OK(aclmdlRIDestroy(graph.model));  // waits for its replays
    graph.Expect(graph.a == graph.d, "a replay was cut short");
    graphs.erase(graphs.begin() + static_cast<std::ptrdiff_t>(index));
  }

  Checker checker_;
  std::deque<Slot> slots_;
  std::deque<EventSlot> events_;
  std::mutex lives_mutex_;
  std::deque<std::unique_ptr<Life>> lives_;
  std::atomic<uint64_t> operations_{0};
};

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

using Stress = SoftDevice;

TEST_F(Stress, EightThreadsOnThirtyTwoStreams) {
  uint64_t seed = FromEnvironment("STRESS_SEED", std::random_device{}());
  auto limit = std::chrono::seconds(FromEnvironment("STRESS_SECONDS", 3));
  std::printf("STRESS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  RecordProperty("seed", std::to_string(seed));
  World world;
  auto end = std::chrono::steady_clock::now() + limit;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&world, end, seed, i] {
      ASSERT_OK(aclrtSetDevice(0));
      std::mt19937_64 random(seed + static_cast<uint64_t>(i));
      std::vector<std::unique_ptr<Graph>> graphs;
      while (std::chrono::steady_clock::now() < end && !HasFailure()) world.Act(random, graphs);
      for (auto& graph : graphs) EXPECT_OK(aclmdlRIDestroy(graph->model));
      ASSERT_OK(aclrtResetDevice(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  world.Finish();
  EXPECT_EQ(world.checker().count(), 0u)
      << world.checker().text() << "\nagain with STRESS_SEED=" << seed;
  EXPECT_GT(world.operations(), 500u);
  std::printf("%llu operations\n", static_cast<unsigned long long>(world.operations()));
}

// The checker itself can fail.

TEST_F(Stress, TheCheckerSeesTasksOutOfOrder) {
  Checker checker;
  Life life(&checker, 0);
  Step{&life, 0}.Run();
  Step{&life, 1}.Run();
  EXPECT_EQ(checker.count(), 0u);
  Step{&life, 3}.Run();
  EXPECT_EQ(checker.count(), 1u) << checker.text();
}

TEST_F(Stress, TheCheckerSeesAMissingWait) {
  for (bool with_wait : {true, false}) {
    Checker checker;
    Gate gate;
    std::atomic<bool> written{false};
    aclrtEvent event = CreateEx();
    Launch(stream_, gate);
    ASSERT_OK(LaunchBody(stream_, "write", [&] { written = true; }));
    ASSERT_OK(aclrtRecordEvent(event, stream_));
    if (with_wait) {
      ASSERT_OK(aclrtStreamWaitEvent(other_, event));
    }
    ASSERT_OK(LaunchBody(other_, "read", [&] {
      if (!written) checker.Violated("a wait passed before its record");
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.Open();
    ASSERT_OK(aclrtSynchronizeDevice());
    EXPECT_EQ(checker.count(), with_wait ? 0u : 1u);
  }
}

TEST_F(Stress, TheCheckerSeesAGraphThatDoesNotWait) {
  Checker checker;
  Graph graph;
  graph.checker = &checker;
  graph.a = 1;
  graph.Expect(graph.a == graph.b + 1, "the fork did not wait");
  EXPECT_EQ(checker.count(), 0u);
  graph.b = 1;
  graph.Expect(graph.a == graph.b + 1, "the fork did not wait");
  EXPECT_EQ(checker.count(), 1u);
}

}  // namespace
}  // namespace acltape::device
