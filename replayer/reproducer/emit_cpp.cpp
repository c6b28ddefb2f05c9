#include "replayer/reproducer/emit_cpp.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "replayer/reproducer/cpp_function.h"
#include "replayer/reproducer/cpp_preamble.h"
#include "storage/error.h"
#include "storage/new_file.h"

namespace acltape::replayer::reproducer {
namespace {

constexpr char kIncludes[] =
    "#include <algorithm>\n#include <array>\n#include <cmath>\n#include <cstdint>\n"
    "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <functional>\n"
    "#include <memory>\n#include <string>\n#include <utility>\n#include <vector>\n\n"
    "#include \"acl/acl.h\"\n#include \"aclnn/acl_meta.h\"\n";

// Replaces the characters that would end a comment line.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\\') c = ' ';
  }
  return text;
}

void MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot make the folder '{}' ({})", folder, std::strerror(errno)));
  }
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a folder", folder));
  }
}

std::string HeadComment(const ReproducerScripts& scripts, const EmitOptions& options) {
  std::string text = "// " + OneLine(options.title) + "\n//\n";
  for (const std::string& note : options.notes) text += "// " + OneLine(note) + "\n";
  if (!options.notes.empty()) text += "//\n";
  text += "// Build, with SDK=the toolkit that has include/ and lib64/:\n//   " +
          std::string(kBuildLine) + "\n";
  text +=
      "// Run:\n//   ./repro          compares the suspect with the reference: 0 equal, 1 "
      "different,\n//                    125 nothing was compared\n";
  text += scripts.clean ? "//   ./repro --clean  the suspect without its fault\n"
                        : "//   ./repro --clean  the reference against itself\n";
  return text + "\n";
}

}  // namespace

void JudgeReproducerFolder(const std::string& folder, bool overwrite, const std::string& trace) {
  struct stat status;
  if (lstat(folder.c_str(), &status) != 0) return;
  if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a folder", folder));
  }
  storage::OutputRules rules{.overwrite = overwrite, .trace = trace};
  for (const char* name : kReproducerFiles) {
    rules.is_trace = std::string_view(name) == kReproducerTrace;
    storage::JudgeOutput(folder + "/" + name, rules);
  }
}

void EmitCpp(const ReproducerScripts& scripts, const EmitOptions& options,
             const std::string& folder) {
  JudgeReproducerFolder(folder, options.overwrite, options.trace);
  MakeFolder(folder);
  const storage::OutputRules rules{.overwrite = options.overwrite, .trace = options.trace};
  storage::NewFile binary(folder + "/" + kReproducerContents, rules);
  const std::function<std::string(int64_t)> describe = [&](int64_t call) {
    return options.describe_call ? OneLine(options.describe_call(call))
                                 : "call " + std::to_string(call);
  };
  CppContents contents(binary.partial());
  std::set<std::string> headers;
  std::string functions = CppFunction(scripts.reference, contents, describe, headers)
                              .Text("Reference", "The trusted execution: every call on its own.") +
                          "\n" +
                          CppFunction(scripts.suspect, contents, describe, headers)
                              .Text("Suspect", "The execution that is judged.") +
                          "\n";
  if (scripts.clean) {
    functions += CppFunction(*scripts.clean, contents, describe, headers)
                     .Text("Clean", "The suspect without its fault.");
  } else {
    functions += "static Results Clean() { return Reference(); }\n";
  }
  contents.Finish();
  binary.Accept();

  std::string text = HeadComment(scripts, options) + kIncludes;
  for (const std::string& header : headers) text += "#include \"" + header + "\"\n";
  text += "\n" + contents.TableText() + kCppPreamble + "\n// ---- The executions\n\n" + functions +
          fmt::format("\nstatic const int kRuns = {};\nstatic const bool kSaturates = {};\n",
                      options.runs, options.saturates) +
          kCppMain;
  storage::WriteNewFile(folder + "/" + kReproducerSource, text, rules);
}

}  // namespace acltape::replayer::reproducer
