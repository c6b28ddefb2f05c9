#include "page/document.h"

#include <fmt/core.h>

#include <ostream>

#include "storage/error.h"

namespace acltape::page {
namespace {

// Shorter texts stay readable in the file.
constexpr size_t kReadableBytes = 1 << 14;

}  // namespace

std::string JsonForHtml(std::string_view json) {
  std::string text;
  text.reserve(json.size() + json.size() / 16);
  for (size_t offset = 0; offset < json.size(); ++offset) {
    const std::string_view rest = json.substr(offset);
    if (rest.starts_with('<')) {
      text += "\\u003c";
    } else if (rest.starts_with('>')) {
      text += "\\u003e";
    } else if (rest.starts_with('&')) {
      text += "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8")) {
      text += "\\u2028";
      offset += 2;
    } else if (rest.starts_with("\xe2\x80\xa9")) {
      text += "\\u2029";
      offset += 2;
    } else {
      text += rest.front();
    }
  }
  return text;
}

Document::Document(std::ostream& out, const Frame& frame) : out_(out), frame_(frame) {
  out_ << frame_.head;
}

void Document::AddJson(std::string_view name, std::string_view json) {
  if (json.size() <= kReadableBytes) {
    out_ << fmt::format("<script type=\"application/json\" data-name=\"{}\">{}</script>\n", name,
                        JsonForHtml(json));
    return;
  }
  Deflater deflater;
  deflater.Add(json);
  out_ << fmt::format("<script type=\"application/x-deflated-json\" data-name=\"{}\">", name)
       << Base64(deflater.Finish()) << "</script>\n";
}

void Document::AddColumn(std::string_view name, Column& column) {
  out_ << fmt::format(
              "<script type=\"application/x-column\" data-name=\"{}\" data-count=\"{}\" "
              "data-coding=\"{}\">",
              name, column.count(), column.coding_name())
       << column.Finish() << "</script>\n";
}

void Document::Finish() {
  out_ << frame_.tail;
  out_.flush();
  if (!out_) {
    throw Error(ErrorKind::kDevice,
                "the page could not be written to its end; is there room on the disk?");
  }
}

}  // namespace acltape::page
