// Prints scripts as one small C++ program over the ACL interface, which shows by itself what they
// show: it runs a reference and a suspect on the same contents and compares what they leave.
//
//   repro.cpp   the program; its first comment says how to build and run it
//   repro.bin   the contents, raw, at the offsets that the program has in a table
//
// The program needs the ACL headers and libraries and nothing else. It ends with 0 when reference
// and suspect agree bit for bit, with 1 when they do not, after naming the first difference, and
// with 2 when a call of the interface fails.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/script/script.h"

namespace acltape::replayer {

struct ReproducerScripts {
  Script reference;             // trusted: nothing captured
  Script suspect;               // captured or altered
  std::optional<Script> clean;  // the suspect without its fault; without one, the reference again
};

struct EmitOptions {
  std::string title;               // one line: what the program shows
  std::vector<std::string> notes;  // lines below it
  // "call 812 aten::mm"; without it "call 812".
  std::function<std::string(int64_t call_id)> describe_call;
  int runs = 1;  // executions of the suspect, up to the first difference; --runs N overrides it
  bool overwrite = false;
};

constexpr char kReproducerSource[] = "repro.cpp";
constexpr char kReproducerContents[] = "repro.bin";

// What a shell runs in the folder of the program. $SDK is the toolkit: include/ and lib64/.
constexpr char kBuildLine[] =
    "c++ -std=c++17 repro.cpp -I$SDK/include -L$SDK/lib64 -Wl,-rpath,$SDK/lib64 -lascendcl "
    "-lopapi -lnnopbase -o repro";

// Makes the folder, whose parent must exist. Throws Error kUsage when it holds a reproducer already
// and may not be overwritten, or when a script has an operation or an operator that a program
// cannot express; kDevice when it cannot be written.
void EmitCpp(const ReproducerScripts& scripts, const EmitOptions& options,
             const std::string& folder);

}  // namespace acltape::replayer
