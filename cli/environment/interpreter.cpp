#include "cli/environment/interpreter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/environment/installation.h"
#include "storage/error.h"
#include "storage/plain_file.h"

namespace acltape::cli {

namespace fs = std::filesystem;

namespace {

// Programs that run another one, which follows their options.
constexpr const char* kWrappers[] = {"env",     "nice",    "ionice", "nohup", "time",  "timeout",
                                     "taskset", "numactl", "setsid", "chrt",  "stdbuf"};

bool IsPython(const fs::path& program) {
  const std::string name = program.filename().string();
  if (name.rfind("python", 0) != 0) return false;
  return name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

bool IsWrapper(const fs::path& program) {
  const std::string name = program.filename().string();
  return std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
}

// An option of a wrapper, a variable that it sets, or the number that it takes.
bool BelongsToWrapper(const std::string& word) {
  return word.empty() || word.front() == '-' || word.find('=') != std::string::npos ||
         (word.front() >= '0' && word.front() <= '9');
}

// The words after "#!" in a script's first line.
std::vector<std::string> FirstLine(const fs::path& script) {
  const std::string head = storage::PlainHead(script, 4096);
  if (!head.starts_with("#!")) return {};
  std::istringstream text(head.substr(2, head.find('\n') - 2));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

fs::path PythonOf(const std::vector<std::string>& command, bool look_into_scripts) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (i > 0 && BelongsToWrapper(command[i])) continue;
    const fs::path program = FindExecutable(command[i]);
    if (program.empty()) {
      // "KILL" of "timeout -s KILL 10 python3".
      if (i > 1 && command[i - 1].starts_with('-')) continue;
      return {};
    }
    if (IsPython(program)) return program;
    if (!IsWrapper(program)) {
      return look_into_scripts ? PythonOf(FirstLine(program), false) : fs::path();
    }
  }
  return {};
}

// Runs in the interpreter. Finding a package does not import it. A wheel that asks for the adapter
// has libraries that ask for the toolkit; they lie in its packages.
constexpr char kQuestion[] = R"(
import glob, importlib.util, json, os, re, sys
def folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        spec = None
    return list(spec.submodule_search_locations or [''])[0] if spec else ''
def wheels():
    found = set()
    for site in sys.path:
        for facts in glob.glob(os.path.join(glob.escape(site), '*.dist-info', 'METADATA')):
            try:
                text = open(facts, encoding='utf-8', errors='replace').read().split('\n\n')[0]
                if not re.search('(?im)^requires-dist: *torch[-_.]npu', text): continue
                rows = open(os.path.join(os.path.dirname(facts), 'RECORD'), encoding='utf-8').read()
            except OSError:
                continue
            tops = {row.split('/')[0] for row in rows.splitlines() if '.so' in row and '/' in row}
            found |= {os.path.join(site, top) for top in tops if not top.startswith('.')}
    return sorted(found)
files = {line.split(None, 5)[5].strip() for line in open('/proc/self/maps') if '/' in line}
print(json.dumps({'torch': folder('torch'), 'torch_npu': folder('torch_npu'),
                  'wheels': wheels(), 'libraries': sorted(files)}))
)";

}  // namespace

fs::path FindExecutable(const std::string& word) {
  if (word.find('/') == std::string::npos) {
    const std::vector<fs::path> found = FindOnPath(word);
    return found.empty() ? fs::path() : found.front();
  }
  return access(word.c_str(), X_OK) == 0 && !fs::is_directory(word) ? fs::path(word) : fs::path();
}

fs::path NamedInterpreter(const std::vector<std::string>& command) {
  return PythonOf(command, true);
}

fs::path FindInterpreter(const std::vector<std::string>& command) {
  const fs::path found = NamedInterpreter(command);
  return found.empty() ? FindExecutable("python3") : found;
}

fs::path InterpreterWithTorch() {
  std::vector<fs::path> candidates;
  if (const char* environment = std::getenv("VIRTUAL_ENV")) {
    candidates.push_back(fs::path(environment) / "bin/python3");
  }
  std::error_code ignored;
  for (const char* folder : {".venv", "venv"}) {
    candidates.push_back(fs::absolute(folder, ignored) / "bin/python3");
  }
  std::vector<std::string> names{"python3", "python"};
  for (int minor = 20; minor >= 8; --minor) names.push_back("python3." + std::to_string(minor));
  for (const std::string& name : names) {
    const std::vector<fs::path> found = FindOnPath(name);
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  std::set<fs::path> asked;  // names of one interpreter
  for (const fs::path& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) != 0) continue;
    // An environment's interpreter is a link to another one, but has packages of its own.
    const bool of_environment = fs::exists(candidate.parent_path() / "../pyvenv.cfg", ignored);
    if (!asked.insert(of_environment ? candidate : fs::canonical(candidate, ignored)).second) {
      continue;
    }
    try {
      if (!AskInterpreter(candidate).torch.empty()) return candidate;
    } catch (const Error&) {
      continue;  // it does not run
    }
  }
  return {};
}

InstalledPackages AskInterpreter(const fs::path& interpreter) {
  const ProgramOutput output = RunProgram({interpreter.string(), "-c", kQuestion});
  const auto answer = nlohmann::json::parse(output.text, nullptr, /*allow_exceptions=*/false);
  if (output.exit_code != 0 || !answer.is_object()) {
    throw Error(ErrorKind::kDevice,
                fmt::format("{} does not run as a Python interpreter; name another one.",
                            interpreter.string()));
  }
  InstalledPackages packages;
  packages.torch = answer["torch"].get<std::string>();
  packages.torch_npu = answer["torch_npu"].get<std::string>();
  for (const auto& folder : answer["wheels"])
    packages.wheels.emplace_back(folder.get<std::string>());
  for (const auto& file : answer["libraries"])
    packages.libraries.emplace_back(file.get<std::string>());
  return packages;
}

}  // namespace acltape::cli
