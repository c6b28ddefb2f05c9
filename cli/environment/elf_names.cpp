#include "cli/environment/elf_names.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <span>

namespace acltape::cli {
namespace {

#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif

// A file mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      const auto bytes = static_cast<size_t>(facts.st_size);
      void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory != MAP_FAILED) bytes_ = {static_cast<const char*>(memory), bytes};
    }
    close(file);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` objects from byte `offset` on; none when the file ends before.
  template <typename T>
  std::span<const T> At(uint64_t offset, uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) return {};
    if (offset % alignof(T) != 0) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }
  // The text from `offset` on; empty when it does not end in the file.
  std::string Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const char* first = bytes_.data() + offset;
    const size_t length = strnlen(first, bytes_.size() - offset);
    return length < bytes_.size() - offset ? std::string(first, length) : std::string();
  }

 private:
  std::span<const char> bytes_;
};

// Sections are enough: libraries that linkers wrote keep them, stripped or not.
std::optional<Elf64_Shdr> FindSection(std::span<const Elf64_Shdr> sections, Elf64_Word type) {
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == type) return section;
  }
  return std::nullopt;
}

}  // namespace

ElfNames ReadElfNames(const std::filesystem::path& path) {
  ElfNames names;
  const MappedFile file(path);
  const auto header = file.At<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_machine != kMachine) {
    return names;
  }
  const auto sections = file.At<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  const auto dynamic = FindSection(sections, SHT_DYNAMIC);
  const auto symbols = FindSection(sections, SHT_DYNSYM);
  if (!dynamic || !symbols || dynamic->sh_link >= sections.size() ||
      symbols->sh_link >= sections.size()) {
    return names;
  }
  names.is_library = true;
  const uint64_t needed_texts = sections[dynamic->sh_link].sh_offset;
  for (const Elf64_Dyn& entry :
       file.At<Elf64_Dyn>(dynamic->sh_offset, dynamic->sh_size / sizeof(Elf64_Dyn))) {
    if (entry.d_tag == DT_NEEDED)
      names.needed.push_back(file.Text(needed_texts + entry.d_un.d_val));
  }
  const uint64_t texts = sections[symbols->sh_link].sh_offset;
  for (const Elf64_Sym& symbol :
       file.At<Elf64_Sym>(symbols->sh_offset, symbols->sh_size / sizeof(Elf64_Sym))) {
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_name == 0 || binding == STB_LOCAL) continue;
    if (symbol.st_shndx != SHN_UNDEF) {
      names.defined.push_back(file.Text(texts + symbol.st_name));
    } else if (binding != STB_WEAK) {
      names.undefined.push_back(file.Text(texts + symbol.st_name));
    }
  }
  return names;
}

}  // namespace acltape::cli
