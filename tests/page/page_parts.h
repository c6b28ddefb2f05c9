// The parts of a page, for tests that look into it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace acltape::page {

// The JSON of a part that is short enough to be readable; null if there is none.
inline nlohmann::json PartOf(const std::string& page, const std::string& name) {
  const std::string begin = "<script type=\"application/json\" data-name=\"" + name + "\">";
  const size_t position = page.find(begin);
  if (position == std::string::npos) return nullptr;
  const size_t end = page.find("</script>", position);
  return nlohmann::json::parse(page.substr(position + begin.size(), end - position - begin.size()));
}

}  // namespace acltape::page
