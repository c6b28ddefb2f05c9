// Texts that results have in forms for other tools: names of files in SARIF, words in XML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "storage/reader.h"

namespace acltape::cli {

// Says from where SARIF names the files of the recorded program. A file below the source root has a
// URI from there on, in every checkout the same; so has a file below the folder in which the
// program was recorded, when that was another checkout. All others are named from the root of the
// machine.
class SourceRoot {
 public:
  // `folder` may be empty: the folder in which acltape runs.
  SourceRoot(const std::string& folder, const storage::Reader& trace);

  // A SARIF artifactLocation: {"uri": "model/layers.py", "uriBaseId": "SRCROOT"}.
  nlohmann::ordered_json Location(const std::string& file) const;
  // The same of a file that acltape read, which is named from where acltape runs.
  nlohmann::ordered_json OwnLocation(const std::string& file) const;
  // A SARIF originalUriBaseIds: the two folders from which files are named.
  nlohmann::ordered_json Bases() const;

 private:
  std::string root_;      // absolute
  std::string recorded_;  // in which the program ran; empty: not known
};

// The text inside of an element or an attribute of XML.
std::string XmlText(const std::string& text);

}  // namespace acltape::cli
