#pragma once
/// Expressions of templates.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/chat/jinja/lexer.h"
#include "tessera/chat/jinja/syntax.h"

namespace tessera::jinja {

/// Reads expressions from tokens. Errors: PlacedProblem: what is no expression, what is not
/// supported, what is nested deeper than kMostSyntaxDepth.
class ExpressionParser {
 public:
  static constexpr int kMostSyntaxDepth = 100;

  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& after(std::size_t count) const;
  Token take();
  bool take_operator(std::string_view text);
  bool take_name(std::string_view text);
  void expect_operator(std::string_view text);
  std::string expect_name(std::string_view what);
  [[noreturn]] void unexpected(std::string_view due) const;

  int symbol(const std::string& name);
  std::vector<std::string> symbols() const;

  ExpressionPtr expression(bool with_condition = true);
  /// An expression, or several with commas between, which are a tuple.
  ExpressionPtr tuple(bool with_condition = true, bool in_parentheses = false);
  /// Filters behind `value`, which may be nullptr.
  ExpressionPtr filters(ExpressionPtr value);

  void enter();
  void leave() { --depth_; }

 private:
  using Is = Expression::Is;
  ExpressionPtr make(Is is, const Place& place) const;
  ExpressionPtr with(ExpressionPtr out, std::vector<ExpressionPtr> parts) const;
  ExpressionPtr with(ExpressionPtr out, ExpressionPtr a, ExpressionPtr b) const;
  ExpressionPtr condition();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr literal_text();
  ExpressionPtr number();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr item(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  void arguments(Expression& call);
  bool ends_tuple() const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, int> symbols_;
};

}  // namespace tessera::jinja
