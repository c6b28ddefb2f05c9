// Lines of source by addresses in programs and libraries, from their debug information (libdw).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace acltape::collector {

struct AddressLine {
  std::string file;      // source file; the program or library itself if the line is not known
  int64_t line = 0;      // 0: not known
  std::string function;  // as the symbol table names it, demangled; "+0x1234" where it does not
};

class AddressLines {
 public:
  AddressLines();
  ~AddressLines();
  AddressLines(const AddressLines&) = delete;
  AddressLines& operator=(const AddressLines&) = delete;

  // `address` counts as in the file's own headers. The first address of a file reads its debug
  // information, which takes milliseconds. Nothing is fetched from servers.
  AddressLine Find(const std::string& file, uint64_t address);
  // The line of the address, and then the lines from which it was called where the compiler put the
  // functions into each other, from inside to outside. All have the function of the symbol table.
  std::vector<AddressLine> FindInlined(const std::string& file, uint64_t address);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace acltape::collector
