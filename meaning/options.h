// The options of the command line. The command declares them from this table (cli/frame/options.h),
// and every text that names an option takes its spelling from here:
//
//   "record with @payload inputs or @payload all"_cli
//
// is the constant "record with --payload inputs or --payload all". A name that the table does not
// have is an error of the compiler. Standard library alone, because the recorder's plug-in is
// compiled with it too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace acltape::meaning {

struct Option {
  std::string_view name;        // in code
  std::string_view spelling;    // on the command line
  std::string_view value = {};  // name of its value, if every command calls it so
  std::string_view help = {};   // help for commands that say nothing else
};

inline constexpr Option kOptions[] = {
    {"accept-different", "--accept-different"},
    {"against", "--against", "TRACE"},
    {"all", "--all"},
    {"allow", "--allow", "FILE"},
    {"allow-races", "--allow-races"},
    {"as", "--as"},
    {"backlog", "--backlog"},
    {"bad", "--bad"},
    {"bad-device-lib", "--bad-device-lib", "PATH"},
    {"bad-env", "--bad-env", "NAME=VALUE"},
    {"baseline", "--baseline"},
    {"budget", "--budget"},
    {"budget-memory", "--budget-memory"},
    {"budget-streams", "--budget-streams"},
    {"calibrate", "--calibrate"},
    {"calls", "--calls"},
    {"capture-mode", "--capture-mode"},
    {"capture-step", "--capture-step"},
    {"captured", "--captured", "CALLS"},
    {"captures", "--captures"},
    {"causes", "--causes"},
    {"check", "--check"},
    {"color", "--color"},
    {"confidence", "--confidence"},
    {"data", "--data", "", "Where inputs come from"},
    {"delay", "--delay"},
    {"dependencies", "--dependencies"},
    {"device-lib", "--device-lib"},
    {"device-times", "--device-times"},
    {"dimension", "--dimension", "DIM"},
    {"disable-tasks", "--disable-tasks"},
    {"duration", "--duration"},
    {"eager-ns", "--eager-ns", "NS"},
    {"edit", "--edit", "FINDING"},
    {"emit", "--emit", "FOLDER"},
    {"engine", "--engine"},
    {"error-bound", "--error-bound"},
    {"executed", "--executed", "CALLS"},
    {"executions", "--executions"},
    {"expected-replays", "--expected-replays"},
    {"fail-on", "--fail-on"},
    {"folder", "--folder", "FOLDER"},
    {"force", "--force", "", "Overwrite the file"},
    {"format", "--format", "", "How to print"},
    {"git", "--git"},
    {"good", "--good"},
    {"good-device-lib", "--good-device-lib", "PATH"},
    {"good-env", "--good-env", "NAME=VALUE"},
    {"graphs-per-size", "--graphs-per-size", "N"},
    {"help", "--help"},
    {"histogram", "--histogram", "FILE"},
    {"in-graph", "--in-graph"},
    {"inputs", "--inputs"},
    {"journal", "--journal"},
    {"keep", "--keep", "WORDS"},
    {"keep-empty", "--keep-empty"},
    {"keep-matches", "--keep-matches"},
    {"keep-streams", "--keep-streams", "STREAMS"},
    {"label", "--label", "TEXT"},
    {"level", "--level"},
    {"limit", "--limit"},
    {"list", "--list"},
    {"master", "--master", "URL"},
    {"max-calls", "--max-calls"},
    {"max-memory", "--max-memory"},
    {"max-regression", "--max-regression", "PERCENT"},
    {"max-size", "--max-size"},
    {"memory", "--memory"},
    {"method", "--method"},
    {"metrics", "--metrics"},
    {"minimum-region", "--minimum-region"},
    {"mismatches", "--mismatches"},
    {"mode", "--mode"},
    {"modules", "--modules"},
    {"name", "--name"},
    {"no-composites", "--no-composites"},
    {"no-contents", "--no-contents"},
    {"no-journal", "--no-journal"},
    {"no-pager", "--no-pager"},
    {"no-results", "--no-results", "", "Write no rows to the trace"},
    {"no-trace", "--no-trace"},
    {"no-updates", "--no-updates", "", "Leave host arguments that vary as captured"},
    {"noise-runs", "--noise-runs"},
    {"only", "--only"},
    {"options", "--options", "FILE"},
    {"output", "--output"},
    {"outputs", "--outputs"},
    {"padding-ns", "--padding-ns", "NS"},
    {"payload", "--payload"},
    {"per-rank", "--per-rank"},
    {"plan", "--plan"},
    {"plant", "--plant"},
    {"process", "--process", "PROCESS"},
    {"prove", "--prove"},
    {"quiet", "--quiet"},
    {"rank", "--rank", "N"},
    {"recompute-cube", "--recompute-cube"},
    {"record-steps", "--record-steps"},
    {"reference-runs", "--reference-runs"},
    {"region", "--region"},
    {"remedy", "--remedy"},
    {"ranks", "--ranks"},
    {"repetitions", "--repetitions"},
    {"restart", "--restart"},
    {"ring-size", "--ring-size"},
    {"rows", "--rows"},
    {"rules", "--rules"},
    {"run-steps", "--run-steps"},
    {"runs", "--runs"},
    {"seed", "--seed", "", "Seed of synthesised values"},
    {"share-memory", "--share-memory", "BUFFERS"},
    {"soc", "--soc"},
    {"socket", "--socket"},
    {"soft", "--soft"},
    {"source-root", "--source-root", "FOLDER",
     "Folder from which sarif names files of the source (default: the current one)"},
    {"spread", "--spread"},
    {"stable", "--stable"},
    {"stacks", "--stacks"},
    {"standard", "--standard", "",
     "What may differ: bitwise, a name that `acltape standards` lists, or a file"},
    {"start-closed", "--start-closed"},
    {"step", "--step", "N"},
    {"steps", "--steps"},
    {"steps-from", "--steps-from"},
    {"stream", "--stream"},
    {"stream-limit", "--stream-limit"},
    {"streams", "--streams"},
    {"stress", "--stress"},
    {"strict-device", "--strict-device"},
    {"table", "--table", "NAME"},
    {"threads", "--threads"},
    {"time-limit", "--time-limit"},
    {"times", "--times"},
    {"title", "--title"},
    {"to", "--to"},
    {"trace-share", "--trace-share"},
    {"trials", "--trials"},
    {"ungrouped", "--ungrouped"},
    {"updates", "--updates"},
    {"verbose", "--verbose"},
    {"version", "--version"},
    {"warmup", "--warmup"},
    {"watch", "--watch", "",
     "Compare what outlives the step, or what every call wrote (then no two buffers share memory)"},
    {"what", "--what"},
    {"wide", "--wide"},
    {"with-producers", "--with-producers"},
    {"witness", "--witness"},
    {"write-baseline", "--write-baseline", "FILE"},
};

// Not defined anywhere. The compiler names it where a text has a name that is not in the table; the
// recorder's wrappers are compiled without exceptions, which would say the same.
void TheTableOfOptionsHasNoSuchName();

constexpr const Option& FindOption(std::string_view name) {
  for (const Option& option : kOptions) {
    if (option.name == name) return option;
  }
  TheTableOfOptionsHasNoSuchName();
  return kOptions[0];
}

// The name of an option of the table, checked by the compiler.
struct OptionName {
  consteval OptionName(const char* name) : option(FindOption(name)) {}
  const Option& option;
};

// A string literal as a template argument.
template <size_t kSize>
struct Literal {
  constexpr Literal(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
  char text[kSize];
};

// Hands `text` to `take` in pieces, with the spelling for every name after an "@". Another "@", as
// in wrong_bits@812, is no name.
template <typename Take>
constexpr void SpellOptions(std::string_view text, Take take) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  while (!text.empty()) {
    size_t end = 1;
    if (text[0] == '@' && text.size() > 1 && letter(text[1])) {
      while (end < text.size() && (letter(text[end]) || text[end] == '-')) ++end;
      take(FindOption(text.substr(1, end - 1)).spelling);
    } else {
      end = std::min(text.find('@', 1), text.size());
      take(text.substr(0, end));
    }
    text.remove_prefix(end);
  }
}

// `kText` with its options spelled, and a zero at the end. The text is copied first: with
// UndefinedBehaviorSanitizer GCC 12 takes no address in a template argument for a constant.
template <Literal kText>
inline constexpr auto kSpelled = [] {
  constexpr size_t kLength = [] {
    const auto from = kText;
    size_t length = 0;
    SpellOptions(from.text, [&length](std::string_view piece) { length += piece.size(); });
    return length;
  }();
  const auto from = kText;
  std::array<char, kLength + 1> spelled{};
  char* to = spelled.data();
  SpellOptions(from.text,
               [&to](std::string_view piece) { to = std::copy_n(piece.data(), piece.size(), to); });
  return spelled;
}();

}  // namespace acltape::meaning

namespace acltape {

template <meaning::Literal kText>
constexpr const char* operator""_cli() {
  return meaning::kSpelled<kText>.data();
}

}  // namespace acltape
