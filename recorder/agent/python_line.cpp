#include "recorder/agent/python_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "base/hash.h"
#include "recorder/agent/generated_code.h"
#include "recorder/agent/interpreter.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/agent/python_frames.h"

namespace acltape::agent {

namespace {

Mutex g_mutex;

constexpr int kMaxDepth = 256;
// Functions that are remembered; each keeps its code object alive. More are passed over.
constexpr uint32_t kMostCodes = 65536;

// Code whose frames are passed over: the framework's, and what it generates. A part a line.
constexpr char kNotTheUsers[] =
    "-packages/acl/\n"
    "-packages/acltape_triton/\n"
    "-packages/torch/\n"
    "-packages/torch_npu/\n"
    "-packages/torchair/\n"
    "-packages/npugraph_ex/\n"
    "-packages/typing_extensions.py\n"
    "/torch_npu/dynamo/\n"
    "<eval_with_key>\n"
    "<frozen \n"
    "/torchinductor_\n";

struct CodeLine {
  int32_t number;
  uint32_t place_id;
};

// The line from which a line of generated code was made; see generated_code.h.
struct Origin {
  int32_t line;  // line of the generated code
  int32_t number;
  uint32_t place_id;  // 0 until it is announced
  const char* file;
  const char* function;
};

// A code object that was met. The reference is kept, so that its address stays its own.
struct Code {
  bool users;
  bool generated;
  bool asked;  // for generated code, true once its lines were asked for
  char* file;
  char* function;
  CodeLine* lines;
  uint32_t line_count;
  uint32_t line_capacity;
  Origin* origins;
  uint32_t origin_count;
};

PointerMap<Code*> g_codes;
std::atomic<uint32_t> g_code_count{0};
// Stands for what the interpreter has in frames of its own, which belong to no function.
Code g_no_code;

}  // namespace

// The code and lines that a thread met before. Entries are found by hash (Recall) and replaced by
// later ones. A replaced entry is found again in g_codes and in the code's own lines, at fifty
// times the cost.
struct LineCache {
  struct CodeEntry {
    const void* address;
    Code* code;
  };
  struct LineEntry {
    const void* address;  // address of the code
    uint64_t instruction;
    uint32_t outer_id;  // with whole stacks
    uint32_t place_id;
  };
  // With whole stacks: a line with its callers. Open addressing.
  struct Node {
    const Code* code;
    int32_t number;
    uint32_t outer_id;
    uint32_t place_id;  // 0: the entry is free
  };
  static constexpr size_t kCodes = 256;
  static constexpr size_t kLines = 512;
  CodeEntry codes[kCodes];
  LineEntry lines[kLines];
  Node* nodes;
  size_t node_count;
  size_t node_capacity;
};

namespace {

// The entry for which `matches` holds, or else an empty one in place of the oldest of its group. A
// group holds the entries of four equal hashes: two lines of one loop must not replace each other
// in every turn.
template <typename Entry, size_t kEntries, typename Matches>
Entry& Recall(Entry (&entries)[kEntries], size_t hash, const Matches& matches) {
  constexpr size_t kGroup = 4;
  Entry* group = entries + hash % (kEntries / kGroup) * kGroup;
  for (size_t i = 0; i < kGroup; ++i) {
    if (matches(group[i])) return group[i];
  }
  memmove(group + 1, group, (kGroup - 1) * sizeof(Entry));
  group[0] = {};
  return group[0];
}

char* TextOf(const Interpreter& py, Object* object, const char* name) {
  Object* value = py.attribute(object, name);
  if (value == nullptr) {
    py.clear_error();
    return nullptr;
  }
  const char* text = py.text(value);
  char* copy = text != nullptr ? CopyText(text, wire::LeftOut::kLines) : nullptr;
  if (text == nullptr) py.clear_error();
  py.release(value);
  return copy;
}

// Python's own library is in the folder of its version, beside the packages that were installed.
bool IsPythons(const char* file) {
  return strstr(file, "/lib/python3.") != nullptr && strstr(file, "-packages/") == nullptr;
}

bool IsTheUsers(const char* file) {
  if (IsPythons(file)) return false;
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
  auto* made = py.error_occurred() == nullptr && g_code_count < kMostCodes
                   ? static_cast<Code*>(AllocateZeros(1, sizeof(Code), wire::LeftOut::kLines))
                   : nullptr;
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
  if (g_codes.Put(code, made) == PutResult::kNoMemory) {
    LeaveOut(wire::LeftOut::kLines);
    free(made->file);
    free(made->function);
    free(made);
    py.release(code);
    return nullptr;
  }
  ++g_code_count;
  return made;
}

uint32_t Announce(Tape& tape, const char* file, const char* function, int32_t number,
                  uint32_t outer_id, uint32_t flags) {
  const char* texts[] = {file, function};
  const uint32_t place_id = tape.NextHandleId();
  tape.WriteWithTexts(
      wire::PlaceRecord{{wire::RecordKind::kPlace, 0, 0}, place_id, number, outer_id, flags}, texts,
      2);
  return place_id;
}

uint32_t PlaceOf(Tape& tape, Code& code, int32_t number) {
  for (uint32_t i = 0; i < code.line_count; ++i) {
    if (code.lines[i].number == number) return code.lines[i].place_id;
  }
  if (code.line_count == code.line_capacity) {
    const uint32_t capacity = code.line_capacity == 0 ? 4 : 2 * code.line_capacity;
    void* larger = Resize(code.lines, capacity * sizeof(CodeLine), wire::LeftOut::kLines);
    if (larger == nullptr) return 0;
    code.lines = static_cast<CodeLine*>(larger);
    code.line_capacity = capacity;
  }
  const CodeLine line{number,
                      Announce(tape, code.file, code.function, number, 0, wire::kPlaceUsers)};
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
  for (const char* next = text; (next = strchr(next, '\n')) != nullptr; ++next) ++count;
  if (count == 0) return;
  code.origins = static_cast<Origin*>(AllocateZeros(count, sizeof(Origin), wire::LeftOut::kLines));
  if (code.origins == nullptr) return;
  for (char* next = text; code.origin_count < count && *next != '\0';) {
    Origin& origin = code.origins[code.origin_count++];
    origin.line = atoi(TakeField(&next));
    origin.file = TakeField(&next);
    origin.number = atoi(TakeField(&next));
    origin.function = TakeField(&next);
  }
}

Origin* OriginOf(Code& code, int32_t line) {
  for (uint32_t i = 0; i < code.origin_count; ++i) {
    if (code.origins[i].line == line) return &code.origins[i];
  }
  return nullptr;
}

// 0 where the line has no origin.
uint32_t PlaceOfOrigin(Tape& tape, Code& code, int32_t line) {
  Origin* found = OriginOf(code, line);
  if (found == nullptr) return 0;
  for (uint32_t i = 0; i < code.origin_count && found->place_id == 0; ++i) {
    const Origin& other = code.origins[i];
    if (other.place_id == 0 || other.number != found->number) continue;
    if (strcmp(other.file, found->file) == 0) found->place_id = other.place_id;
  }
  if (found->place_id == 0) {
    found->place_id =
        Announce(tape, found->file, found->function, found->number, 0, wire::kPlaceUsers);
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

// Visits the frames of the thread, the innermost first, by the interpreter's public functions:
// `visit(frame, code)`, with a null code where it stays unknown, is true to go on. The caller holds
// the interpreter's lock.
template <typename Visit>
void VisitFrames(const Interpreter& py, ThreadState* state, const Visit& visit) {
  Object* frame = py.frame_of(state);
  for (int depth = 0; frame != nullptr && depth < kMaxDepth; ++depth) {
    Object* object = py.code_of(frame);
    Code* code = nullptr;
    if (object != nullptr) {
      Lock lock(g_mutex);
      code = CodeOf(py, frame, object);
    }
    if (!visit(frame, code)) break;
    Object* outer = py.back_of(frame);
    py.release(frame);
    frame = outer;
  }
  if (frame != nullptr) py.release(frame);
}

// Makes the code of all frames known, and asks generated code for its origins. False if some code
// stays unknown. The caller holds the interpreter's lock.
bool LearnCode(const Interpreter& py, ThreadState* state, LockUse use) {
  bool all = true;
  VisitFrames(py, state, [&](Object* frame, Code* code) {
    if (code != nullptr && code->generated) AskForOrigins(py, frame, *code, use);
    all = all && code != nullptr;
    return true;
  });
  return all;
}

// The same line as TopLine gives, from the interpreter's public functions. The caller holds the
// interpreter's lock.
uint32_t TopLineByFunctions(Tape& tape, const Interpreter& py, ThreadState* state) {
  uint32_t place_id = 0;
  VisitFrames(py, state, [&](Object* frame, Code* code) {
    if (code == nullptr || (!code->users && !code->generated)) return true;
    Lock lock(g_mutex);
    const int32_t line = py.line_of(frame);
    place_id = code->users ? PlaceOf(tape, *code, line) : PlaceOfOrigin(tape, *code, line);
    return place_id == 0 && !code->users;
  });
  return place_id;
}

// Null: the code was not met before.
Code* KnownCode(LineCache& cache, const void* address) {
  const auto key = reinterpret_cast<uint64_t>(address);
  auto& entry = Recall(cache.codes, base::SpreadPair(key, 0),
                       [&](const LineCache::CodeEntry& one) { return one.address == address; });
  if (entry.address == address) return entry.code;
  Code* code = nullptr;
  if (!g_codes.Get(address, &code)) return g_code_count < kMostCodes ? nullptr : &g_no_code;
  entry = {address, code};
  return code;
}

constexpr uint32_t kUnknown = ~uint32_t{0};

// The place of a frame of the user's or of generated code. 0: generated code without an origin.
// kUnknown: generated code that was not asked yet.
uint32_t PlaceAt(Tape& tape, LineCache& cache, const Interpreter& py, Code& code,
                 const RawFrame& frame) {
  const auto address = reinterpret_cast<uint64_t>(frame.code);
  auto& entry = Recall(cache.lines, base::SpreadPair(address, frame.instruction),
                       [&](const LineCache::LineEntry& one) {
                         return one.address == frame.code && one.instruction == frame.instruction;
                       });
  if (entry.address == frame.code) return entry.place_id;
  const int32_t line = LineOf(py, frame);
  uint32_t place_id = 0;
  {
    Lock lock(g_mutex);
    if (!code.users && !code.asked) return kUnknown;
    place_id = code.users ? PlaceOf(tape, code, line) : PlaceOfOrigin(tape, code, line);
  }
  entry = {frame.code, frame.instruction, 0, place_id};
  return place_id;
}

// kUnknown: a function of the stack was not met before.
uint32_t TopLine(Tape& tape, LineCache& cache, const Interpreter& py, const ThreadState* state) {
  RawFrame frame = InnermostFrame(state);
  for (int depth = 0; frame.address != nullptr && depth < kMaxDepth; ++depth) {
    Code* code = KnownCode(cache, frame.code);
    if (code == nullptr) return kUnknown;
    if (code->users || code->generated) {
      const uint32_t place_id = PlaceAt(tape, cache, py, *code, frame);
      if (place_id != 0) return place_id;
    }
    frame = CallerOf(frame);
  }
  return 0;
}

bool GrowNodes(LineCache& cache) {
  const size_t capacity = cache.node_capacity == 0 ? 256 : 2 * cache.node_capacity;
  auto* nodes = static_cast<LineCache::Node*>(
      AllocateZeros(capacity, sizeof(LineCache::Node), wire::LeftOut::kLines));
  if (nodes == nullptr) return false;
  for (size_t i = 0; i < cache.node_capacity; ++i) {
    const LineCache::Node& node = cache.nodes[i];
    if (node.place_id == 0) continue;
    size_t slot =
        base::SpreadPair(reinterpret_cast<uint64_t>(node.code) + node.number, node.outer_id);
    while (nodes[slot % capacity].place_id != 0) ++slot;
    nodes[slot % capacity] = node;
  }
  free(cache.nodes);
  cache.nodes = nodes;
  cache.node_capacity = capacity;
  return true;
}

// The id of a line whose callers have the id `outer_id`; 0: no memory.
uint32_t NodeOf(Tape& tape, LineCache& cache, Code& code, int32_t number, uint32_t outer_id) {
  if (2 * (cache.node_count + 1) > cache.node_capacity && !GrowNodes(cache)) return 0;
  size_t slot = base::SpreadPair(reinterpret_cast<uint64_t>(&code) + number, outer_id);
  for (;; ++slot) {
    LineCache::Node& node = cache.nodes[slot % cache.node_capacity];
    if (node.place_id == 0) break;
    if (node.code == &code && node.number == number && node.outer_id == outer_id) {
      return node.place_id;
    }
  }
  Lock lock(g_mutex);
  const Origin* origin = code.users ? nullptr : OriginOf(code, number);
  const bool users = code.users || origin != nullptr;
  const uint32_t flags = wire::kPlaceWhole | (users ? wire::kPlaceUsers : uint32_t{0});
  const uint32_t place_id =
      origin != nullptr
          ? Announce(tape, origin->file, origin->function, origin->number, outer_id, flags)
          : Announce(tape, code.file, code.function, number, outer_id, flags);
  cache.nodes[slot % cache.node_capacity] = {&code, number, outer_id, place_id};
  ++cache.node_count;
  return place_id;
}

// As TopLine, of all frames.
uint32_t WholeStack(Tape& tape, LineCache& cache, const Interpreter& py, const ThreadState* state) {
  struct Entry {
    RawFrame frame;
    Code* code;
  };
  Entry stack[kMaxDepth];
  int depth = 0;
  for (RawFrame frame = InnermostFrame(state); frame.address != nullptr && depth < kMaxDepth;
       frame = CallerOf(frame)) {
    Code* code = KnownCode(cache, frame.code);
    if (code == nullptr) return kUnknown;
    if (code->file != nullptr && code->function != nullptr) stack[depth++] = {frame, code};
  }
  uint32_t id = 0;
  while (depth > 0) {
    const auto& [frame, code] = stack[--depth];
    const auto address = reinterpret_cast<uint64_t>(frame.code);
    auto& entry = Recall(cache.lines, base::SpreadPair(address + id, frame.instruction),
                         [&, &frame = frame](const LineCache::LineEntry& one) {
                           return one.address == frame.code &&
                                  one.instruction == frame.instruction && one.outer_id == id;
                         });
    if (entry.address != frame.code) {
      const uint32_t node = NodeOf(tape, cache, *code, LineOf(py, frame), id);
      if (node == 0) return id;
      entry = {frame.code, frame.instruction, id, node};
    }
    id = entry.place_id;
  }
  return id;
}

// As TopLine, with the framework's frames inside of the user's one. A line of generated code stands
// alone.
uint32_t LineWithCallees(Tape& tape, LineCache& cache, const Interpreter& py,
                         const ThreadState* state) {
  constexpr int kMostCallees = 32;
  struct Entry {
    RawFrame frame;
    Code* code;
  };
  Entry inner[kMostCallees];
  int depth = 0;
  for (RawFrame frame = InnermostFrame(state); frame.address != nullptr; frame = CallerOf(frame)) {
    Code* code = KnownCode(cache, frame.code);
    if (code == nullptr) return kUnknown;
    if (code->generated || depth == kMostCallees || (code->users && depth == 0)) break;
    if (code->users) {
      uint32_t id = NodeOf(tape, cache, *code, LineOf(py, frame), 0);
      while (depth > 0 && id != 0) {
        const auto& [callee, callee_code] = inner[--depth];
        id = NodeOf(tape, cache, *callee_code, LineOf(py, callee), id);
      }
      return id;
    }
    if (code->file != nullptr && code->function != nullptr) inner[depth++] = {frame, code};
  }
  return TopLine(tape, cache, py, state);
}

// The line of the nearest function of the user's that was met before.
uint32_t NearestKnownLine(Tape& tape, LineCache& cache, const Interpreter& py,
                          const ThreadState* state) {
  RawFrame frame = InnermostFrame(state);
  for (int depth = 0; frame.address != nullptr && depth < kMaxDepth; ++depth) {
    Code* code = KnownCode(cache, frame.code);
    if (code != nullptr && code->users) return PlaceAt(tape, cache, py, *code, frame);
    frame = CallerOf(frame);
  }
  return 0;
}

uint32_t FromFrames(Tape& tape, LineCache& cache, const Interpreter& py, const ThreadState* state,
                    FrameUse frames) {
  if (tape.arena->stacks == wire::StackPolicy::kFull) return WholeStack(tape, cache, py, state);
  return frames == FrameUse::kToTheUsers ? LineWithCallees(tape, cache, py, state)
                                         : TopLine(tape, cache, py, state);
}

// Learns the code of the interpreter's own frames, which is no code of a function. Called when all
// functions of the stack are known.
void LearnOwnFrames(const ThreadState* state) {
  RawFrame frame = InnermostFrame(state);
  for (int depth = 0; frame.address != nullptr && depth < kMaxDepth; ++depth) {
    Code* code = nullptr;
    if (!g_codes.Get(frame.code, &code)) g_codes.Put(frame.code, &g_no_code);
    frame = CallerOf(frame);
  }
}

// The caller holds the interpreter's lock.
uint32_t LearnAndRead(Tape& tape, LineCache& cache, const Interpreter& py, ThreadState* state,
                      LockUse use, FrameUse frames) {
  const bool all = LearnCode(py, state, use);
  VerifyFrames(py, state);
  if (!CanReadFrames()) return TopLineByFunctions(tape, py, state);
  if (all) LearnOwnFrames(state);
  const uint32_t place_id = FromFrames(tape, cache, py, state, frames);
  return place_id == kUnknown ? 0 : place_id;
}

LineCache* CacheOf(Tape& tape) {
  if (tape.lines == nullptr) {
    tape.lines =
        static_cast<LineCache*>(AllocateZeros(1, sizeof(LineCache), wire::LeftOut::kLines));
  }
  return tape.lines;
}

}  // namespace

namespace {

// The interpreter's state of the calling thread; null: no line can be read.
__attribute__((always_inline)) inline ThreadState* StateToRead(const Tape& tape,
                                                               const Interpreter& py) {
  if (tape.arena->stacks == wire::StackPolicy::kNone) return nullptr;
  if (!py.complete || py.is_finalizing() != 0) return nullptr;
  return py.this_thread();  // null before the interpreter has begun and after it has ended
}

__attribute__((always_inline)) inline uint32_t ReadLine(Tape& tape, const Interpreter& py,
                                                        ThreadState* state, LockUse use,
                                                        FrameUse frames) {
  LineCache* cache = CacheOf(tape);
  if (cache == nullptr) return 0;
  if (CanReadFrames()) {
    const uint32_t place_id = FromFrames(tape, *cache, py, state, frames);
    if (place_id != kUnknown) return place_id;
  }
  if (py.HasLock(state)) return LearnAndRead(tape, *cache, py, state, use, frames);
  if (use == LockUse::kIfHeld || py.LockIsUnknown(state)) {
    const bool top = tape.arena->stacks == wire::StackPolicy::kTop;
    return top && CanReadFrames() ? NearestKnownLine(tape, *cache, py, state) : 0;
  }
  const int before = py.take_lock();
  const uint32_t place_id = LearnAndRead(tape, *cache, py, state, use, frames);
  py.give_lock(before);
  return place_id;
}

}  // namespace

uint32_t PythonLine(Tape& tape, LockUse use, FrameUse frames) {
  const Interpreter& py = TheInterpreter();
  ThreadState* state = StateToRead(tape, py);
  if (state == nullptr) return 0;
  if (tape.line_call != 0 && tape.line_call == tape.open_call && frames == FrameUse::kLine &&
      InnermostFrame(state).address == tape.line_frame) {
    return tape.line_place;
  }
  return ReadLine(tape, py, state, use, frames);
}

uint32_t LeafLine(Tape& tape, uint64_t call_id) {
  const Interpreter& py = TheInterpreter();
  ThreadState* state = StateToRead(tape, py);
  if (state == nullptr) return 0;
  const uint32_t place_id = ReadLine(tape, py, state, LockUse::kTake, FrameUse::kLine);
  if (!tape.meets_acl) return place_id;
  const bool known = place_id != 0 && CanReadFrames();
  tape.line_call = known ? call_id : 0;
  if (!known) return place_id;
  tape.line_frame = InnermostFrame(state).address;
  tape.line_place = place_id;
  return place_id;
}

void FreeLines(LineCache* lines) {
  if (lines == nullptr) return;
  free(lines->nodes);
  free(lines);
}

void ForgetPythonLocks() {
  ForgetInterpreterLock();
  g_mutex.Forget();
  g_codes.ForgetLocks();
}

}  // namespace acltape::agent

// pyACL calls this before it gives the interpreter's lock back for a call: the functions of the
// stack are met here, so that the call has its line (Note [Taking the interpreter's lock]).
extern "C" ACLTAPE_AGENT_API void acltape_agent_python_line() {
  using acltape::agent::LockUse;
  acltape::agent::Tape* tape = acltape::agent::CurrentTape();
  if (tape != nullptr) acltape::agent::PythonLine(*tape, LockUse::kIfHeld);
}
