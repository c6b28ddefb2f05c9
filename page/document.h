// The page as it is written: the frame, then the data of each section, then the scripts. It is
// written as a stream, so that a section's data can be given up as soon as it is out.
//
// Every string of a trace is data, whoever wrote it. It enters the page in two forms only: as JSON
// without the characters that HTML gives a meaning, and as base64. Scripts of the page read it and
// put it on the screen as text.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "page/column.h"
#include "page/web_files.h"

namespace acltape::page {

// The JSON with `<`, `>`, `&` and the line separators U+2028 and U+2029 written as \u escapes. They
// can only stand inside strings, so the JSON means the same.
std::string JsonForHtml(std::string_view json);

class Document {
 public:
  // Writes the frame. The stream must outlive the document.
  explicit Document(std::ostream& out, const Frame& frame = kReportFrame);

  // `name` is one of the program's own words. Long texts are deflated.
  void AddJson(std::string_view name, std::string_view json);
  // Finishes the column.
  void AddColumn(std::string_view name, Column& column);
  // Writes the scripts. Throws Error kDevice when the stream has failed.
  void Finish();

 private:
  std::ostream& out_;
  const Frame& frame_;
};

}  // namespace acltape::page
