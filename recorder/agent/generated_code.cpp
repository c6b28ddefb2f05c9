#include "recorder/agent/generated_code.h"

#include <string.h>

#include "recorder/agent/memory.h"

namespace acltape::agent {

namespace {

// The module that npugraph_ex and torchair run their generated code in.
constexpr char kGeneratedModule[] = "ge_mod";
constexpr char kGeneratedFile[] = "<string>";
constexpr char kGraphModuleFile[] = "<eval_with_key>";

// A frame's local variables are looked at through a copy that the frame keeps up to Python 3.12,
// with what they refer to: it is emptied at once, so that no tensor lives longer than it would.
constexpr char kOrigins[] = R"python(
def origins(frame, passed_over):
    import dis
    import re

    def held_by(frame):
        code = frame.f_code
        if not code.co_flags & 1 or "self" not in code.co_varnames[:code.co_argcount]:
            return None
        names = frame.f_locals
        holder = names.get("self")
        if type(names) is dict:
            names.clear()
        return holder

    def find_graph(frame):
        for _ in range(32):
            if frame is None:
                return None
            holder = held_by(frame)
            for path in ("graph", "fx_graph.graph", "_fx_graph.graph", "runner.fx_graph.graph"):
                found = holder
                for name in path.split("."):
                    found = getattr(found, name, None)
                if type(found).__module__ == "torch.fx.graph":
                    return found
            frame = frame.f_back

    graph = find_graph(frame)
    if graph is None:
        return ""
    parts = passed_over.splitlines()
    traces = {node.name: node.stack_trace for node in graph.nodes if node.stack_trace}
    lines = {}
    line = None
    for step in dis.get_instructions(frame.f_code):
        positions = getattr(step, "positions", None)
        line = (positions.lineno if positions else step.starts_line) or line
        if not step.opname.startswith("STORE_FAST") or line in lines or step.argval not in traces:
            continue
        for file, number, function in reversed(
                re.findall(r'File "(.+)", line (\d+), in (.+)', traces[step.argval])):
            if not any(part in file for part in parts):
                lines[line] = f"{line}\t{file}\t{number}\t{function}\n"
                break
    return "".join(lines.values())
)python";

// The function above, made at the first call; null when it cannot be.
Object* OriginsFunction(const Interpreter& py) {
  static Object* function = nullptr;
  static bool tried = false;
  if (tried) return function;
  tried = true;
  Object* names = py.new_dict();  // kept: the function's globals
  if (names == nullptr || py.set_item(names, "__builtins__", py.builtins()) != 0) return nullptr;
  Object* done = py.run(kOrigins, kFileInput, names, names, nullptr);
  if (done == nullptr) return nullptr;
  py.release(done);
  function = py.item(names, "origins");
  return function;
}

}  // namespace

bool IsGenerated(const Interpreter& py, Object* frame, const char* file) {
  if (strstr(file, kGraphModuleFile) != nullptr) return true;
  if (strcmp(file, kGeneratedFile) != 0) return false;
  Object* names = py.attribute(frame, "f_globals");
  if (names == nullptr) {
    py.clear_error();
    return false;
  }
  Object* name = py.item(names, "__name__");
  const char* text = name != nullptr ? py.text(name) : nullptr;
  const bool generated = text != nullptr && strcmp(text, kGeneratedModule) == 0;
  if (name != nullptr && text == nullptr) py.clear_error();
  py.release(names);
  return generated;
}

char* OriginsOf(const Interpreter& py, Object* frame, const char* passed_over) {
  Object* function = OriginsFunction(py);
  Object* result = function != nullptr ? py.call(function, "Os", frame, passed_over) : nullptr;
  const char* text = result != nullptr ? py.text(result) : nullptr;
  char* copy = text != nullptr ? CopyText(text, wire::LeftOut::kLines) : nullptr;
  if (text == nullptr) py.clear_error();
  if (result != nullptr) py.release(result);
  return copy;
}

}  // namespace acltape::agent
