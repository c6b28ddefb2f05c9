#include "recorder/agent/python_frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace acltape::agent {

namespace {

// The positions of the fields, in bytes from the beginning of their structures.
struct Layout {
  int minor;                // minor version of Python 3
  uint16_t state_frame;     // thread state: the innermost frame, or the C frame that names it
  int16_t c_frame;          // C frame: the innermost frame; -1: the state names it itself
  uint16_t code, previous;  // frame
  uint16_t instruction;     // frame: the instruction, as an address or as an index
  uint16_t index_bytes;     // bytes of an instruction where it is an index; 0: an address
};
constexpr Layout kLayouts[] = {
    {9, 24, -1, 32, 24, 104, 1}, {10, 24, -1, 32, 24, 96, 2}, {11, 56, 8, 32, 48, 56, 0},
    {12, 56, 0, 0, 8, 56, 0},    {13, 72, -1, 0, 8, 56, 0},
};

enum class Known : uint8_t { kNothing, kFits, kFitsNot };
std::atomic<Known> g_known{Known::kNothing};
Layout g_layout;
int64_t g_first_instruction;  // in a code object, where instructions are addresses

const Layout* LayoutOf(const Interpreter& py) {
  const char* version = py.version();
  if (strncmp(version, "3.", 2) != 0) return nullptr;
  const int minor = atoi(version + 2);
  for (const Layout& layout : kLayouts) {
    if (layout.minor == minor) return &layout;
  }
  return nullptr;
}

template <typename T>
T Load(const char* address) {
  T value;
  memcpy(&value, address, sizeof(T));
  return value;
}

uint64_t InstructionOf(const Layout& layout, const char* field) {
  return layout.index_bytes == 0 ? Load<uint64_t>(field)
                                 : static_cast<uint64_t>(Load<int32_t>(field)) * layout.index_bytes;
}

// Reads memory of this process that may not be there.
template <typename T>
bool TryLoad(const char* address, T* value) {
  iovec local{value, sizeof(T)};
  iovec remote{const_cast<char*>(address), sizeof(T)};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof(T));
}

bool TryInnermost(const Layout& layout, const char* state, const char** frame) {
  if (!TryLoad(state + layout.state_frame, frame)) return false;
  return layout.c_frame < 0 || TryLoad(*frame + layout.c_frame, frame);
}

// The field of a frame object, an integer; -1: none.
int64_t Number(const Interpreter& py, Object* frame, const char* name) {
  Object* value = py.attribute(frame, name);
  const int64_t number = value != nullptr ? py.integer(value) : -1;
  if (value == nullptr || py.error_occurred() != nullptr) py.clear_error();
  if (value != nullptr) py.release(value);
  return number;
}

// Compares one frame object with the raw frame at `frame_address`, or with one of the callers of
// that: the interpreter puts frames of its own between those of functions. Leaves the caller's in
// `frame_address`.
bool MatchFrame(const Interpreter& py, const Layout& layout, Object* frame,
                const char** frame_address, int64_t* first_instruction) {
  Object* code = py.code_of(frame);
  if (code == nullptr) return false;
  py.release(code);  // the frame holds it
  constexpr int kOwnFrames = 3;
  for (int skipped = 0; skipped <= kOwnFrames && *frame_address != nullptr; ++skipped) {
    const char* found = nullptr;
    const char* previous = nullptr;
    uint64_t instruction = 0;
    if (!TryLoad(*frame_address + layout.code, &found) ||
        !TryLoad(*frame_address + layout.previous, &previous) ||
        !TryLoad(*frame_address + layout.instruction, &instruction)) {
      return false;
    }
    const char* own = *frame_address;
    *frame_address = previous;
    if (found != reinterpret_cast<const char*>(code)) continue;
    const int64_t offset = Number(py, frame, "f_lasti");
    if (py.line_at(code, static_cast<int>(offset)) != py.line_of(frame)) return false;
    if (layout.index_bytes != 0) {
      return static_cast<int64_t>(InstructionOf(layout, own + layout.instruction)) == offset;
    }
    const int64_t first =
        static_cast<int64_t>(instruction) - offset - reinterpret_cast<int64_t>(found);
    if (*first_instruction == 0) *first_instruction = first;
    return first == *first_instruction && first > 0 && first < 1024;
  }
  return false;
}

bool Fits(const Interpreter& py, const Layout& layout, ThreadState* state, int* frames,
          int64_t* first_instruction) {
  const char* frame_address = nullptr;
  if (!TryInnermost(layout, reinterpret_cast<const char*>(state), &frame_address)) return false;
  Object* frame = py.frame_of(state);
  bool fits = true;
  while (frame != nullptr && fits && *frames < 64) {
    fits = MatchFrame(py, layout, frame, &frame_address, first_instruction);
    ++*frames;
    Object* outer = py.back_of(frame);
    py.release(frame);
    frame = outer;
  }
  if (frame != nullptr) py.release(frame);
  return fits;
}

// True if a test wants the public functions alone, as with an interpreter that nobody knows.
bool IsLayoutUnwanted() {
  const char* wanted = getenv("ACLTAPE_PYTHON_LAYOUT");
  return wanted != nullptr && strcmp(wanted, "none") == 0;
}

}  // namespace

bool CanReadFrames() { return g_known.load(std::memory_order_acquire) == Known::kFits; }

void VerifyFrames(const Interpreter& py, ThreadState* state) {
  if (g_known.load(std::memory_order_relaxed) != Known::kNothing) return;
  if (py.error_occurred() != nullptr) return;  // reading attributes would lose it
  const Layout* layout = IsLayoutUnwanted() ? nullptr : LayoutOf(py);
  int frames = 0;
  int64_t first_instruction = 0;
  const bool fits = layout != nullptr && Fits(py, *layout, state, &frames, &first_instruction);
  if (fits && frames == 0) return;
  if (fits) {
    g_layout = *layout;
    g_first_instruction = first_instruction;
  }
  g_known.store(fits ? Known::kFits : Known::kFitsNot, std::memory_order_release);
}

namespace {

RawFrame FrameAt(const char* frame_address) {
  if (frame_address == nullptr) return {};
  return {frame_address, Load<const void*>(frame_address + g_layout.code),
          InstructionOf(g_layout, frame_address + g_layout.instruction)};
}

}  // namespace

RawFrame InnermostFrame(const ThreadState* state) {
  const char* frame_address =
      Load<const char*>(reinterpret_cast<const char*>(state) + g_layout.state_frame);
  if (g_layout.c_frame >= 0 && frame_address != nullptr)
    frame_address = Load<const char*>(frame_address + g_layout.c_frame);
  return FrameAt(frame_address);
}

RawFrame CallerOf(const RawFrame& frame) {
  return FrameAt(Load<const char*>(frame.address + g_layout.previous));
}

int LineOf(const Interpreter& py, const RawFrame& frame) {
  int64_t offset = static_cast<int64_t>(frame.instruction);
  if (g_layout.index_bytes == 0) {
    offset -= reinterpret_cast<int64_t>(frame.code) + g_first_instruction;
  }
  return py.line_at(const_cast<Object*>(static_cast<const Object*>(frame.code)),
                    static_cast<int>(offset));
}

}  // namespace acltape::agent
