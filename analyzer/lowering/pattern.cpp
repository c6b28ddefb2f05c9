#include "analyzer/lowering/pattern.h"

#include <cctype>
#include <stdexcept>

namespace acltape::analyzer::lowering {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<CallPattern> Calls() {
    std::vector<CallPattern> calls;
    do {
      Expression call = Parse();
      if (call.kind != Expression::Kind::kFunction) Fail("a call was expected");
      calls.push_back({std::move(call.name), std::move(call.operands)});
    } while (Accept(';'));
    SkipSpace();
    if (position_ != text_.size()) Fail("the end was expected");
    return calls;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::invalid_argument("lowering pattern \"" + std::string(text_) + "\": " + what +
                                " at character " + std::to_string(position_));
  }

  void SkipSpace() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }

  bool Accept(char c) {
    SkipSpace();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  Expression Parse() {
    SkipSpace();
    if (position_ >= text_.size()) Fail("an expression was expected");
    const char c = text_[position_];
    if (c == '\'') return Text();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) return Number();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return NameOrFunction();
    Fail("an expression was expected");
  }

  Expression Text() {
    Expression expression;
    expression.kind = Expression::Kind::kText;
    const size_t end = text_.find('\'', position_ + 1);
    if (end == std::string_view::npos) Fail("the text does not end");
    expression.name = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return expression;
  }

  Expression Number() {
    const size_t first = position_++;
    bool real = false;
    while (position_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[position_])) || text_[position_] == '.' ||
            text_[position_] == 'e')) {
      real = real || !std::isdigit(static_cast<unsigned char>(text_[position_]));
      ++position_;
    }
    const std::string digits(text_.substr(first, position_ - first));
    Expression expression;
    expression.kind = real ? Expression::Kind::kReal : Expression::Kind::kInt;
    if (real) {
      expression.real = std::stod(digits);
    } else {
      expression.integer = std::stoll(digits);
    }
    return expression;
  }

  Expression NameOrFunction() {
    const size_t first = position_;
    while (
        position_ < text_.size() &&
        (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    Expression expression;
    expression.name = text_.substr(first, position_ - first);
    if (Accept('(')) {
      expression.kind = Expression::Kind::kFunction;
      if (Accept(')')) return expression;
      do {
        expression.operands.push_back(Parse());
      } while (Accept(','));
      if (!Accept(')')) Fail("\")\" was expected");
      return expression;
    }
    if (expression.name == "true" || expression.name == "false") {
      expression.kind = Expression::Kind::kBool;
      expression.integer = expression.name == "true" ? 1 : 0;
    } else if (expression.name == "none") {
      expression.kind = Expression::Kind::kNone;
    } else {
      expression.kind = Expression::Kind::kName;
    }
    return expression;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

std::vector<CallPattern> ParsePattern(std::string_view text) { return Parser(text).Calls(); }

}  // namespace acltape::analyzer::lowering
