#include "recorder/torch/identity.h"

#include <elf.h>
#include <link.h>
#include <torch/version.h>

#if __has_include(<caffe2/core/common.h>)  // Debian's package leaves it out
#include <caffe2/core/common.h>
#define ACLTAPE_HAS_BUILD_OPTIONS 1
#endif

#include <cstring>
#include <string>
#include <string_view>

namespace acltape::torch_plugin {

namespace {

std::string Hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The build id among the notes of one segment.
std::string BuildIdIn(const char* notes, size_t bytes) {
  const auto padded = [](size_t size) { return (size + 3) & ~size_t{3}; };
  for (size_t offset = 0; offset + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + offset, sizeof(note));
    const size_t name = offset + sizeof(note);
    const size_t content = name + padded(note.n_namesz);
    if (content + note.n_descsz > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      return Hexadecimal(reinterpret_cast<const unsigned char*>(notes + content), note.n_descsz);
    }
    offset = content + padded(note.n_descsz);
  }
  return "";
}

int FindTorch(dl_phdr_info* info, size_t, void* opaque) {
  const std::string_view file = info->dlpi_name;
  const size_t slash = file.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  if (name.rfind("libtorch_cpu.so", 0) != 0) return 0;
  auto& build_id = *static_cast<std::string*>(opaque);
  for (int i = 0; i < info->dlpi_phnum && build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    build_id = BuildIdIn(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr),
                         segment.p_memsz);
  }
  return 1;
}

}  // namespace

void WriteTorchIdentity(agent::Tape* tape) {
  tape->WriteMeta("torch_version", TORCH_VERSION);
  // at::show_config tells the same, but it asks for the hooks of other devices, and whoever asks
  // before their libraries are loaded is told for ever that there are none.
#ifdef ACLTAPE_HAS_BUILD_OPTIONS
  const auto& options = caffe2::GetBuildOptions();
  if (const auto commit = options.find("COMMIT_SHA"); commit != options.end()) {
    tape->WriteMeta("torch_commit", commit->second.c_str());
  }
#endif
  std::string build_id;  // build id of its linker, hexadecimal; empty when it wrote none
  dl_iterate_phdr(FindTorch, &build_id);
  if (!build_id.empty()) tape->WriteMeta("torch_build_id", build_id.c_str());
}

}  // namespace acltape::torch_plugin
