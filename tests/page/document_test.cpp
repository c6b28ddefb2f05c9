// Whatever a trace says, it enters the page as data.
#include "page/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "storage/error.h"

namespace acltape::page {
namespace {

TEST(JsonForHtml, HasNoCharacterThatHtmlGivesAMeaning) {
  const std::string hostile = nlohmann::json{"</script><script>alert(1)</script>", "<!--", "a&lt;b",
                                             "\xe2\x80\xa8\xe2\x80\xa9"}
                                  .dump();
  const std::string text = JsonForHtml(hostile);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xa8"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xa9"), std::string::npos);
}

TEST(JsonForHtml, MeansTheSame) {
  const nlohmann::json value = {{"a<b", "c>d&e\xe2\x80\xa8"}, {"plain", "grüße \xf0\x9f\x98\x80"}};
  EXPECT_EQ(nlohmann::json::parse(JsonForHtml(value.dump())), value);
}

TEST(JsonForHtml, LeavesOtherCharactersOfTheSameBytesAlone) {
  const std::string dash = "\"\xe2\x80\x94\"";  // begins like U+2028
  EXPECT_EQ(JsonForHtml(dash), dash);
  EXPECT_EQ(JsonForHtml("\"\xe2"), "\"\xe2");  // torn at the end
}

std::string PageWith(const std::string& json, const Frame& frame = kReportFrame) {
  std::ostringstream out;
  Document page(out, frame);
  page.AddJson("facts", json);
  page.Finish();
  return out.str();
}

TEST(Document, AllowsNothingButItsOwnScriptsAndStyle) {
  for (const Frame* frame : {&kReportFrame, &kFleetFrame}) {
    const std::string page = PageWith("{}", *frame);
    const size_t position = page.find("Content-Security-Policy\" content=\"");
    ASSERT_NE(position, std::string::npos);
    const std::string policy = page.substr(position, page.find('>', position) - position);
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << policy;
    EXPECT_NE(policy.find("script-src 'sha256-"), std::string::npos) << policy;
    for (const char* word : {"unsafe", "http", "data:", "*"}) {
      EXPECT_EQ(policy.find(word), std::string::npos) << policy;
    }
  }
}

TEST(Document, KeepsHostileTextInsideItsElement) {
  for (const size_t length : {size_t{1}, size_t{100000}}) {  // readable, and deflated
    std::string text;
    for (size_t i = 0; i < length; ++i) text += "</script><img src=x onerror=alert(1)>";
    const std::string page = PageWith(nlohmann::json{{"name", text}}.dump());
    EXPECT_EQ(page.find("\\u003cimg src=x") != std::string::npos, length == 1);
    EXPECT_EQ(page.find("<img"), std::string::npos);
  }
}

TEST(Document, SaysWhenTheStreamFailed) {
  std::ostringstream out;
  Document page(out);
  out.setstate(std::ios::badbit);
  EXPECT_THROW(page.Finish(), Error);
}

}  // namespace
}  // namespace acltape::page
