#include "recorder/acl/python_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/acl/generated_code.h"
#include "recorder/acl/interpreter.h"
#include "recorder/acl/lock.h"
#include "recorder/acl/pointer_map.h"
#include "recorder/acl/thread.h"

namespace acltape::acl_agent {

namespace {

Mutex g_mutex;

// Code whose frames are passed over: the framework's, and what it generates. A part a line.
constexpr char kNotTheUsers[] =
    "-packages/torch/\n"
    "-packages/torch_npu/\n"
    "-packages/torchair/\n"
    "-packages/npugraph_ex/\n"
    "/torch_npu/dynamo/\n"
    "<eval_with_key>\n"
    "<frozen \n"
    "/torchinductor_\n";

struct Line {
  int32_t number;
  uint32_t place_id;
};

// The line from which a line of generated code was made; see generated_code.h.
struct Origin {
  int32_t line;  // of the generated code
  int32_t number;
  uint32_t place_id;  // 0 until it is announced
  const char* file;
  const char* function;
};

// A code object that was met. The reference is kept, so that its address stays its own.
struct Code {
  bool users;
  bool generated;
  bool asked;  // of generated code: where its lines come from
  char* file;
  char* function;
  Line* lines;
  uint32_t line_count;
  uint32_t line_capacity;
  Origin* origins;
  uint32_t origin_count;
};

PointerMap<Code*> g_codes;

char* TextOf(const Interpreter& py, Object* object, const char* name) {
  Object* value = py.attribute(object, name);
  if (value == nullptr) {
    py.clear_error();
    return nullptr;
  }
  const char* text = py.text(value);
  char* copy = text != nullptr ? strdup(text) : nullptr;
  if (text == nullptr) py.clear_error();
  py.release(value);
  return copy;
}

bool IsTheUsers(const char* file) {
  for (const char* part = kNotTheUsers; *part != '\0';) {
    const char* end = strchr(part, '\n');
    if (memmem(file, strlen(file), part, static_cast<size_t>(end - part)) != nullptr) return false;
    part = end + 1;
  }
  return true;
}

// The entry of the frame's code object; takes over the reference to `code` or gives it back. Null:
// unknown.
Code* CodeOf(const Interpreter& py, Object* frame, Object* code) {
  Code* known = nullptr;
  if (g_codes.Get(code, &known)) {
    py.release(code);
    return known;
  }
  // Asking for an attribute would lose an error that the program has yet to meet.
  auto* made =
      py.error_occurred() == nullptr ? static_cast<Code*>(calloc(1, sizeof(Code))) : nullptr;
  if (made == nullptr) {
    py.release(code);
    return nullptr;
  }
  made->file = TextOf(py, code, "co_filename");
  made->function = TextOf(py, code, "co_qualname");  // since 3.11
  if (made->function == nullptr) made->function = TextOf(py, code, "co_name");
  if (made->file != nullptr && made->function != nullptr) {
    made->generated = IsGenerated(py, frame, made->file);
    made->users = !made->generated && IsTheUsers(made->file);
  }
  g_codes.Put(code, made);
  return made;
}

uint32_t Announce(agent::Tape& tape, const char* file, const char* function, int32_t number) {
  const char* texts[] = {file, function};
  const uint32_t place_id = tape.NextHandleId();
  tape.WriteWithTexts(wire::PlaceRecord{{wire::RecordKind::kPlace, 0, 0}, place_id, number}, texts,
                      2);
  return place_id;
}

uint32_t PlaceOf(Thread& thread, Code& code, int32_t number) {
  for (uint32_t i = 0; i < code.line_count; ++i) {
    if (code.lines[i].number == number) return code.lines[i].place_id;
  }
  if (code.line_count == code.line_capacity) {
    const uint32_t capacity = code.line_capacity == 0 ? 4 : 2 * code.line_capacity;
    void* larger = realloc(code.lines, capacity * sizeof(Line));
    if (larger == nullptr) return 0;
    code.lines = static_cast<Line*>(larger);
    code.line_capacity = capacity;
  }
  const Line line{number, Announce(*thread.tape, code.file, code.function, number)};
  code.lines[code.line_count++] = line;
  return line.place_id;
}

// The next field of a line of `text`, which ends at a tab or at the end of the line.
char* TakeField(char** text) {
  char* field = *text;
  char* end = field + strcspn(field, "\t\n");
  *text = *end == '\0' ? end : end + 1;
  *end = '\0';
  return field;
}

// Reads the lines that OriginsOf gave; the texts of the origins stay in them.
void KeepOrigins(Code& code, char* text) {
  uint32_t count = 0;
  for (const char* at = text; (at = strchr(at, '\n')) != nullptr; ++at) ++count;
  if (count == 0) return;
  code.origins = static_cast<Origin*>(calloc(count, sizeof(Origin)));
  if (code.origins == nullptr) return;
  for (char* at = text; code.origin_count < count && *at != '\0';) {
    Origin& origin = code.origins[code.origin_count++];
    origin.line = atoi(TakeField(&at));
    origin.file = TakeField(&at);
    origin.number = atoi(TakeField(&at));
    origin.function = TakeField(&at);
  }
}

// 0 where the line has no origin.
uint32_t PlaceOfOrigin(Thread& thread, Code& code, int32_t line) {
  Origin* found = nullptr;
  for (uint32_t i = 0; i < code.origin_count && found == nullptr; ++i) {
    if (code.origins[i].line == line) found = &code.origins[i];
  }
  if (found == nullptr) return 0;
  for (uint32_t i = 0; i < code.origin_count && found->place_id == 0; ++i) {
    const Origin& other = code.origins[i];
    if (other.place_id == 0 || other.number != found->number) continue;
    if (strcmp(other.file, found->file) == 0) found->place_id = other.place_id;
  }
  if (found->place_id == 0) {
    found->place_id = Announce(*thread.tape, found->file, found->function, found->number);
  }
  return found->place_id;
}

// Asks once where the lines of generated code come from. That runs Python, which may give the
// interpreter's lock away for a moment: not with a lock of ours held, and not where the caller may
// hold one that a thread with the interpreter's lock waits for.
void AskForOrigins(const Interpreter& py, Object* frame, Code& code, LockUse use) {
  if (use != LockUse::kTake || py.error_occurred() != nullptr) return;
  {
    Lock lock(g_mutex);
    if (code.asked) return;
    code.asked = true;
  }
  char* text = OriginsOf(py, frame, kNotTheUsers);
  if (text == nullptr) return;
  Lock lock(g_mutex);
  KeepOrigins(code, text);
}

// The caller holds the interpreter's lock.
uint32_t InnermostLine(Thread& thread, const Interpreter& py, ThreadState* state, LockUse use) {
  constexpr int kMaxDepth = 256;
  Object* frame = py.frame_of(state);
  uint32_t place_id = 0;
  for (int depth = 0; frame != nullptr && depth < kMaxDepth; ++depth) {
    Object* object = py.code_of(frame);
    Code* code = nullptr;
    if (object != nullptr) {
      Lock lock(g_mutex);
      code = CodeOf(py, frame, object);
    }
    if (code != nullptr && code->generated) AskForOrigins(py, frame, *code, use);
    if (code != nullptr && (code->users || code->generated)) {
      Lock lock(g_mutex);
      const int32_t line = py.line_of(frame);
      place_id = code->users ? PlaceOf(thread, *code, line) : PlaceOfOrigin(thread, *code, line);
      if (place_id != 0 || code->users) break;
    }
    Object* outer = py.back_of(frame);
    py.release(frame);
    frame = outer;
  }
  if (frame != nullptr) py.release(frame);
  return place_id;
}

}  // namespace

uint32_t PythonLine(Thread& thread, LockUse use) {
  const Interpreter& py = TheInterpreter();
  if (!py.complete || py.is_initialized() == 0 || py.is_finalizing() != 0) return 0;
  ThreadState* state = py.this_thread();
  if (state == nullptr) return 0;
  if (py.has_lock() != 0) return InnermostLine(thread, py, state, use);
  if (use == LockUse::kIfHeld) return 0;
  const int before = py.take_lock();
  const uint32_t place_id = InnermostLine(thread, py, state, use);
  py.give_lock(before);
  return place_id;
}

void ForgetPythonLocks() {
  ForgetInterpreterLock();
  g_mutex.Forget();
  g_codes.ForgetLocks();
}

}  // namespace acltape::acl_agent
