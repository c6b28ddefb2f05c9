// Journals of bisections (replayer/bisect/journal.h), read from a file in memory.
#include "replayer/bisect/journal.h"

#include <sys/mman.h>
#include <unistd.h>

#include "storage/error.h"
#include "tests/fuzz/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("journal", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    acltape::replayer::bisect::Journal journal("/proc/self/fd/" + std::to_string(file), "{}",
                                               /*restart=*/false);
  } catch (const acltape::Error&) {
  }
  close(file);
  return 0;
}

namespace acltape::fuzz {

std::vector<std::string> SoundInputs() {
  const std::string head = "{\"acltape_journal\":1,\"subject\":{}}\n";
  return {head, head +
                    "{\"experiment\":\"search\",\"altered\":\"0-41,57\",\"verdict\":\"bad\","
                    "\"executions\":5,\"bad_executions\":5,\"fingerprint\":\"ab\",\"evidence\":{},"
                    "\"seconds\":0.12}\n"};
}

}  // namespace acltape::fuzz
