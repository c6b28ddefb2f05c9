// Measures how fast one core of the collector turns records into rows. Asserts nothing: it prints.
//
//   drain_speed [CALLS [FILE]]
//
// A call is what a four-element add of the torch plug-in writes: a buffer's birth, the call, the
// death of the previous result.
#include <sys/stat.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/ring_log.h"
#include "storage/writer.h"
#include "tests/recorder/producer.h"

namespace {

// Processor time, so that other work on the machine does not count.
uint64_t SpentNs() {
  timespec spent;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<uint64_t>(spent.tv_sec) * 1000000000u + static_cast<uint64_t>(spent.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace acltape;
  const long calls = argc > 1 ? atol(argv[1]) : 1000000;
  const std::string path = argc > 2 ? argv[2] : "/tmp/acltape-drain-speed.db";
  collector::ArenaOptions options;
  options.slots = 1;
  collector::ArenaOwner arena(options);
  storage::Writer::Options writer_options;
  writer_options.overwrite = true;
  writer_options.base_ns = static_cast<int64_t>(arena.header().base_ns);
  storage::Writer writer(path, writer_options);
  collector::TraceBuilder trace(writer, arena.header(), arena.clock(), "");
  collector::RingLog log(trace, 0, {1, 1, "program", {}});

  const test::Arena mapped = test::Arena::Open(arena.fd());
  test::Producer producer(mapped);
  std::byte* ring = wire::MapRing(arena.fd(), arena.header(), 0);
  wire::RingConsumer consumer(producer.slot(), ring, arena.header().ring_bytes);
  uint64_t spent = 0;
  uint64_t bytes = 0;
  const auto drain = [&] {
    const uint64_t begin = SpentNs();
    for (auto range = consumer.Peek(); range.bytes > 0; range = consumer.Peek()) {
      const size_t taken = log.Consume({range.begin, range.bytes});
      consumer.Release(taken);
      bytes += taken;
    }
    spent += SpentNs() - begin;
  };
  producer.Op(0, "aten::add", "Tensor", test::Producer::kAddSchema);
  const std::string signature = test::Producer::AddSignature();
  const uint64_t a = producer.Birth(16);
  const uint64_t b = producer.Birth(16);
  uint64_t last = 0;
  for (long i = 0; i < calls; ++i) {
    const uint64_t id = producer.NextCallId();
    const uint64_t begin = wire::Tick();
    const uint64_t result = producer.Birth(16, id);
    producer.Call(id, 0, {a, b, result}, signature, 0, 0, begin);
    if (last != 0) producer.Death(last);
    last = result;
    if (i % 10000 == 9999) drain();
  }
  drain();
  const uint64_t before_close = SpentNs();
  log.Finish(static_cast<uint64_t>(calls));
  trace.Finish();
  writer.Finish("complete");
  const uint64_t closing = SpentNs() - before_close;
  struct stat status;
  stat(path.c_str(), &status);
  printf(
      "drain %.0f ns per call, close %.0f ns per call, ring %.0f bytes per call, file %.1f "
      "bytes per call\n",
      static_cast<double>(spent) / calls, static_cast<double>(closing) / calls,
      static_cast<double>(bytes) / calls, static_cast<double>(status.st_size) / calls);
  wire::UnmapRing(ring, arena.header());
  unlink(path.c_str());
  return 0;
}
