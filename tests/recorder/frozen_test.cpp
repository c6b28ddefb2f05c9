// A collector that does not answer: the program goes on, and what it could not record is counted.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

TEST_F(RecordTest, CallsThatACollectorDidNotTakeInTimeAreCounted) {
  constexpr int64_t kCalls = 20000;
  auto options = Options({});
  options.command = {ACLTAPE_FROZEN_PROGRAM, std::to_string(kCalls)};
  options.ring_bytes = 64 << 10;
  options.patience_ns = 200'000'000;
  const pid_t child = fork();  // the process that the program stops
  if (child == 0) _exit(collector::Record(options).state == "partial" ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the state is not 'partial'";
  const storage::Reader reader(Path());
  const int64_t kept = reader.CallCount(true);
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, kCalls);
  const auto ledger = reader.Ledger();
  const storage::LedgerEntry* missing = Find(ledger, "calls_missing");
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->severity, storage::Severity::kDataLoss);
  EXPECT_EQ(missing->count, kCalls - kept);
  const storage::LedgerEntry* dropped = Find(ledger, "records_dropped");
  ASSERT_NE(dropped, nullptr);
  EXPECT_GE(dropped->count, missing->count);
}

}  // namespace
}  // namespace acltape::test
