// Prints scripts as one small C++ program over the ACL interface. The program shows their
// difference without acltape: it runs a reference and a suspect on the same contents and compares
// their results.
//
//   repro.cpp   the program; its first comment says how to build and run it
//   repro.bin   the contents, raw, at the offsets that the program has in a table
//
// The program needs only the ACL headers and libraries. It ends with 0 if reference and suspect
// agree bit for bit, with 1 if they do not (it names the first difference), with 2 if a call of the
// interface fails, and with 125 if nothing was compared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/engine/script.h"

namespace acltape::replayer::reproducer {

struct ReproducerScripts {
  Script reference;  // trusted: nothing is captured
  Script suspect;    // captured or altered
  // The suspect without its fault. Without it, --clean runs the reference again.
  std::optional<Script> clean;
};

struct EmitOptions {
  std::string title;               // one line that says what the program shows
  std::vector<std::string> notes;  // lines below it
  // Returns a text such as "call 812 aten::mm". If it is empty, the text is "call 812".
  std::function<std::string(int64_t call_id)> describe_call;
  // Most executions of the suspect; it stops at the first difference. --runs N overrides this.
  int runs = 1;
  bool saturates = false;  // results saturate, as in the recorded program (rule OVF-03)
  bool overwrite = false;
  std::string trace;  // is not overwritten (storage/new_file.h)
};

constexpr char kReproducerSource[] = "repro.cpp";
constexpr char kReproducerContents[] = "repro.bin";
constexpr char kReproducerTrace[] = "trace.db";
constexpr char kReproducerReadme[] = "README.md";
// All that is written into the folder of a reproducer, also what its build and its runs write.
constexpr const char* kReproducerFiles[] = {
    kReproducerSource, kReproducerContents, kReproducerTrace, kReproducerReadme,
    "repro",           "build.log",         "run.log",        "clean.log"};

// The command that builds the program in its folder. $SDK is the toolkit with include/ and lib64/.
constexpr char kBuildLine[] =
    "c++ -std=c++17 repro.cpp -I$SDK/include -L$SDK/lib64 -Wl,-rpath,$SDK/lib64 -lascendcl "
    "-lopapi -lnnopbase -o repro";

// Throws Error kUsage if one of kReproducerFiles must not be written there (storage::JudgeOutput).
void JudgeReproducerFolder(const std::string& folder, bool overwrite, const std::string& trace);

// Creates the folder, whose parent must exist. Throws as JudgeReproducerFolder, Error kUsage if a
// program cannot express an operation or an operator of a script. Throws kDevice if the folder
// cannot be written.
void EmitCpp(const ReproducerScripts& scripts, const EmitOptions& options,
             const std::string& folder);

}  // namespace acltape::replayer::reproducer
