#include "cli/bisect/bisect_sides.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/choices/step_choice.h"
#include "cli/frame/options.h"
#include "replayer/sides/side_environment.h"

namespace acltape::cli {
namespace {

using nlohmann::json;
using replayer::script::MixedStep;
using replayer::sides::ProcessSide;

constexpr std::pair<std::string_view, Side::Kind> kSideWords[] = {
    {"eager", Side::Kind::kEager},
    {"captured", Side::Kind::kCaptured},
    {"recorded", Side::Kind::kRecorded},
};

std::unique_ptr<ProcessSide> MakeSide(const char* name, const SideOptions::One& options,
                                      const SidesRequest& request,
                                      const std::vector<std::string>& environment,
                                      const storage::Reader& reader) {
  replayer::sides::ProcessSideOptions process;
  process.name = name;
  process.library = options.library.empty() ? request.device_lib : options.library;
  process.environment = replayer::sides::EnvironmentOfSide(environment, options.settings, reader);
  if (request.time_limit) {
    process.time_limit = std::chrono::milliseconds(static_cast<int64_t>(*request.time_limit * 1e3));
  }
  process.quiet = !request.verbose;
  return std::make_unique<ProcessSide>(std::move(process));
}

}  // namespace

Side ParseSide(const std::string& option, const std::string& text) {
  if (text.starts_with("plan:") && text.size() > 5) return {Side::Kind::kPlan, text.substr(5)};
  for (const auto& [word, kind] : kSideWords) {
    if (text == word) return {kind, ""};
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{} '{}' is no way of execution; they are eager, captured and plan:FILE, "
                          "and for @good also recorded."_cli,
                          option, text));
}

void SideOptions::Declare(CLI::App& app) {
  const auto declare = [&](meaning::OptionName library, meaning::OptionName setting,
                           const std::string& calls, One& one) {
    AddOption(app, library, one.library,
              "Execute " + calls + " on this ACL library, in a process of its own, all eagerly");
    AddOption(app, setting, one.settings,
              "Set this in the environment of that process; may be repeated")
        ->allow_extra_args(false);
  };
  declare("good-device-lib", "good-env", "the calls that are not altered", good);
  declare("bad-device-lib", "bad-env", "the altered calls", bad);
}

void CheckSides(const Side& good, const Side& bad, const SideOptions& sides,
                const std::vector<std::pair<bool, const char*>>& other_options) {
  for (const auto& [used, option] : other_options) {
    if (!used) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} cannot be combined with {}, where calls are executed eagerly on "
                            "one side or the other.",
                            option,
                            sides.Given() ? "a device library or an environment of a side"
                                          : "@good recorded"_cli));
  }
  if (bad.kind != Side::Kind::kEager) {
    throw Error(ErrorKind::kUsage,
                sides.Given() ? "sides with a device library or an environment of their own are "
                                "executed eagerly; leave @bad out."_cli
                              : "against @good recorded calls are executed eagerly; leave @bad "
                                "out."_cli);
  }
  if (good.kind != Side::Kind::kEager && good.kind != Side::Kind::kRecorded) {
    throw Error(ErrorKind::kUsage,
                "sides with a device library or an environment of their own are executed eagerly; "
                "@good is eager or recorded."_cli);
  }
  if (good.kind == Side::Kind::kRecorded && sides.good.Given()) {
    throw Error(ErrorKind::kUsage,
                "@good recorded executes nothing on the good side; leave @good-device-lib and "
                "@good-env out."_cli);
  }
  for (const std::string& setting : sides.good.settings) {
    replayer::sides::CheckSetting("@good-env"_cli, setting);
  }
  for (const std::string& setting : sides.bad.settings) {
    replayer::sides::CheckSetting("@bad-env"_cli, setting);
  }
}

SidesBisector::SidesBisector(const storage::Reader& reader, const SideOptions& sides,
                             SidesRequest request, const std::vector<std::string>& environment)
    : reader_(reader), sides_(sides), request_(std::move(request)) {
  if (!request_.recorded) {
    good_ = MakeSide(replayer::sides::kGoodSide, sides_.good, request_, environment, reader);
  }
  if (!request_.recorded || sides_.bad.Given()) {
    bad_ = MakeSide(replayer::sides::kBadSide, sides_.bad, request_, environment, reader);
  }
}

const std::string& SidesBisector::session_library() const {
  return sides_.good.library.empty() ? request_.device_lib : sides_.good.library;
}

replayer::sides::EagerStepOptions SidesBisector::StepOptions(const MixedStep& step) const {
  replayer::sides::EagerStepOptions options;
  options.executions = request_.executions;
  options.run_matches.clear();
  const size_t steps = step.step_class().matches.size();
  for (const int64_t number : request_.run_steps) {
    const std::optional<size_t> match = FindMatch(step, number);
    if (!match) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("step {} is none of the bisected class, whose steps are {}.", number,
                              StepNumbers(step)));
    }
    options.run_matches.push_back(*match);
  }
  if (options.run_matches.empty()) options.run_matches.push_back(std::min<size_t>(1, steps - 1));
  if (request_.run_steps.empty() && steps > 2) options.run_matches.push_back(steps - 1);
  std::string numbers;
  for (const size_t match : options.run_matches) {
    numbers += (numbers.empty() ? "" : ",") + std::to_string(StepNumber(step, match));
  }
  options.command = request_.given
                        .With({{"git", true},
                               {"no-journal", true},
                               {"no-results", true},
                               {"journal", false},
                               {"restart", false},
                               {"run-steps", numbers},
                               {"executions", std::to_string(options.executions)}})
                        .Printer();
  return options;
}

std::string SidesBisector::Identity(const MixedStep& step) {
  return json{{"recorded", request_.recorded},
              {"good", DescribeGood(step)},
              {"bad", DescribeBad(step)},
              {"run_matches", StepOptions(step).run_matches},
              {"executions", request_.executions}}
      .dump();
}

replayer::bisect::BisectionReport SidesBisector::Bisect(
    const MixedStep& step, const replayer::sides::SidesBisectionOptions& options,
    replayer::bisect::Journal* journal) {
  return request_.recorded
             ? replayer::sides::BisectRecorded(step, bad_.get(), options, journal)
             : replayer::sides::BisectSides(step, {good_.get(), bad_.get()}, options, journal);
}

std::string SidesBisector::Describe(ProcessSide* side, const SideOptions::One& options,
                                    const MixedStep& step) {
  std::string text =
      "eager on " + (side != nullptr ? side->Description() : step.session().device().description());
  for (const std::string& setting : options.settings) text += ", " + setting;
  return text;
}

std::string SidesBisector::DescribeGood(const MixedStep& step) {
  return good_ == nullptr ? "recorded" : Describe(good_.get(), sides_.good, step);
}

std::string SidesBisector::DescribeBad(const MixedStep& step) {
  return Describe(bad_.get(), sides_.bad, step);
}

}  // namespace acltape::cli
