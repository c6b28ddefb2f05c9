#include "replayer/sides/side_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "replayer/device/device.h"
#include "storage/error.h"

namespace acltape::replayer::sides {
namespace {

std::string_view NameOf(std::string_view setting) { return setting.substr(0, setting.find('=')); }

bool Has(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& one) { return NameOf(one) == name; });
}

std::string TorchThreads(const storage::Reader& trace) {
  return RecordedThreads(trace, "torch_threads");
}
std::string BlasThreads(const storage::Reader& trace) {
  return RecordedThreads(trace, "blas_threads");
}
std::string ExactBlocks(const storage::Reader&) { return kExactBlocks; }

// A variable that gets its value from the recording, if that has one. It is not set if the
// environment already has it, or if the side sets `unless`, which has the same meaning.
struct RecordedVariable {
  const char* name;
  std::string (*value)(const storage::Reader& trace);
  const char* unless;
};
constexpr RecordedVariable kRecorded[] = {
    {"OPENBLAS_NUM_THREADS", BlasThreads, "OPENBLAS_NUM_THREADS"},
    {"ACLTAPE_SOFT_THREADS", TorchThreads, "OMP_NUM_THREADS"},
    {"OMP_NUM_THREADS", TorchThreads, "OMP_NUM_THREADS"},
    {"ACLTAPE_SOFT_GENERATOR", RecordedGenerator, "ACLTAPE_SOFT_GENERATOR"},
    {kBlocks, ExactBlocks, kBlocks},
};

}  // namespace

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

std::vector<std::string> EnvironmentOfSide(std::vector<std::string> environment,
                                           const std::vector<std::string>& settings,
                                           const storage::Reader& trace) {
  for (const std::string& setting : settings) {
    std::erase_if(environment,
                  [&](const std::string& one) { return NameOf(one) == NameOf(setting); });
    environment.push_back(setting);
  }
  for (const RecordedVariable& row : kRecorded) {
    const std::string value = row.value(trace);
    if (value.empty() || Has(environment, row.name) || Has(settings, row.unless)) continue;
    environment.push_back(std::string(row.name) + "=" + value);
  }
  return environment;
}

void CheckSetting(const std::string& option, const std::string& setting) {
  const std::string_view name = NameOf(setting);
  const bool fine = name.size() != setting.size() && !name.empty() &&
                    std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
                    });
  if (fine) return;
  throw Error(ErrorKind::kUsage,
              option + " '" + setting + "' is no setting; it looks like NAME=VALUE.");
}

}  // namespace acltape::replayer::sides
