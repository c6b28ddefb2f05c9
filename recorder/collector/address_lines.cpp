#include "recorder/collector/address_lines.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

namespace acltape::collector {
namespace {

char* g_no_debug_path = nullptr;
const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, dwfl_build_id_find_debuginfo,
                                   dwfl_offline_section_address, &g_no_debug_path};

// Without parameters and unnamed namespaces: "Solver::Step".
std::string Demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  std::string text = name != nullptr ? name.get() : symbol;
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t position = 0; (position = text.find(kUnnamed)) != std::string::npos;) {
    text.erase(position, kUnnamed.size());
  }
  if (text.find("operator()") == std::string::npos)
    text.resize(std::min(text.size(), text.find('(')));
  return text;
}

}  // namespace

struct AddressLines::State {
  struct EndSession {
    void operator()(Dwfl* session) const { dwfl_end(session); }
  };

  // A session of one file: addresses of its own then need no base that others could occupy.
  struct OpenedFile {
    std::unique_ptr<Dwfl, EndSession> session;
    Dwfl_Module* module = nullptr;
    GElf_Addr bias = 0;  // is added to the file's own addresses
  };

  static OpenedFile Open(const std::string& file) {
    OpenedFile opened;
    opened.session.reset(dwfl_begin(&kCallbacks));
    if (opened.session == nullptr) return opened;
    dwfl_report_begin(opened.session.get());
    opened.module = dwfl_report_offline(opened.session.get(), file.c_str(), file.c_str(), -1);
    dwfl_report_end(opened.session.get(), nullptr, nullptr);
    if (opened.module != nullptr && dwfl_module_getelf(opened.module, &opened.bias) == nullptr) {
      opened.module = nullptr;
    }
    return opened;
  }

  const OpenedFile& FileOf(const std::string& file);

  std::map<std::string, OpenedFile> files;
};

AddressLines::AddressLines() : state_(std::make_unique<State>()) {}
AddressLines::~AddressLines() = default;

const AddressLines::State::OpenedFile& AddressLines::State::FileOf(const std::string& file) {
  auto [entry, fresh] = files.try_emplace(file);
  if (fresh) entry->second = Open(file);
  return entry->second;
}

AddressLine AddressLines::Find(const std::string& file, uint64_t address) {
  AddressLine found{file, 0, fmt::format("+{:#x}", address)};
  const State::OpenedFile& opened = state_->FileOf(file);
  if (opened.module == nullptr) return found;
  const GElf_Addr module_address = address + opened.bias;
  if (const char* symbol = dwfl_module_addrname(opened.module, module_address)) {
    found.function = Demangled(symbol);
  }
  // libdwfl gives code without debug information to the unit that lies before it.
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(opened.module, module_address, &bias);
  if (unit == nullptr || dwarf_haspc(unit, module_address - bias) != 1) return found;
  Dwfl_Line* line = dwfl_module_getsrc(opened.module, module_address);
  int number = 0;
  const char* source =
      line != nullptr ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  if (source != nullptr && number > 0) {
    found.file = source;
    found.line = number;
  }
  return found;
}

std::vector<AddressLine> AddressLines::FindInlined(const std::string& file, uint64_t address) {
  std::vector<AddressLine> lines = {Find(file, address)};
  const State::OpenedFile& opened = state_->FileOf(file);
  if (opened.module == nullptr || lines.front().line == 0) return lines;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(opened.module, address + opened.bias, &bias);
  Dwarf_Files* names = nullptr;
  if (unit == nullptr || dwarf_getsrcfiles(unit, &names, nullptr) != 0) return lines;
  // The innermost scope, and then the scopes that enclose it in the machine code; dwarf_getscopes
  // itself goes on with those that enclose the function in the source.
  Dwarf_Die* innermost = nullptr;
  if (dwarf_getscopes(unit, address + opened.bias - bias, &innermost) <= 0) return lines;
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(innermost, &std::free);
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(innermost, &scopes);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> scopes_owner(scopes, &std::free);
  for (int i = 0; i < count; ++i) {
    if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
    Dwarf_Attribute attribute;
    Dwarf_Word called_in = 0;
    Dwarf_Word line = 0;
    if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &called_in) != 0 ||
        dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line) != 0) {
      continue;
    }
    const char* source = dwarf_filesrc(names, called_in, nullptr, nullptr);
    if (source == nullptr) continue;
    lines.push_back({source, static_cast<int64_t>(line), lines.front().function});
  }
  return lines;
}

}  // namespace acltape::collector
