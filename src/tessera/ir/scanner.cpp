#include "tessera/ir/scanner.h"

#include <algorithm>

#include "tessera/ir/attr.h"

namespace tessera {

void Scanner::blanks() {
  while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  if (!at_end() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
}

void Scanner::lines() {
  for (blanks(); !at_end() && text_[at_] == '\n'; blanks()) ++at_;
}

bool Scanner::accept(char c) {
  blanks();
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void Scanner::expect(char c, std::string_view what) {
  if (!accept(c)) expected(what);
}

std::string_view Scanner::word() {
  blanks();
  const std::size_t start = at_;
  bool inside = false;  // of brackets
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == '\n' ||
        (!inside && std::string_view(" \t\r,(){}=\"#").find(c) != std::string_view::npos))
      break;
  }
  return text_.substr(start, at_ - start);
}

void Scanner::keyword(std::string_view keyword, std::string_view what) {
  blanks();
  const std::size_t start = at_;
  if (word() == keyword) return;
  at_ = start;
  expected(what);
}

std::string_view Scanner::quoted_word(std::string_view what) {
  blanks();
  const std::size_t start = at_;
  expect('"', what);
  for (; peek() != '"'; ++at_) {
    if (peek() == '\\') ++at_;
    if (peek() == '\n') wrong(start, "expected a closing quote before the line ends");
  }
  ++at_;
  return text_.substr(start, at_ - start);
}

std::string Scanner::path(std::string_view what) {
  blanks();
  const std::size_t start = at_;
  if (peek() == '"') {
    const std::string_view line = quoted_word(what);
    return placed(start, [&] { return unquoted(line); });
  }
  const std::string_view bare = word();
  if (bare.empty()) expected(what);
  return std::string(bare);
}

std::string_view Scanner::rest_of_line() {
  blanks();
  const std::size_t start = at_;
  while (!at_end() && text_[at_] != '\n' && text_[at_] != '#') ++at_;
  return text_.substr(start, at_ - start);
}

void Scanner::end_of_line() {
  blanks();
  if (peek() != '\n') expected("the end of the line");
  if (!at_end()) ++at_;
}

NodeId Scanner::node_id() {
  expect('%', "a node like %12");
  return number<NodeId>("a node's number");
}

ValueId Scanner::value() {
  ValueId out{node_id(), 0};
  if (peek() == '.') {
    ++at_;
    out.index = number<std::int32_t>("a result's number");
  }
  return out;
}

ValueIds Scanner::values() {
  ValueIds out;
  expect('(', "'(' and values");
  if (accept(')')) return out;
  do out.push_back(value());
  while (accept(','));
  expect(')', "',' or ')'");
  return out;
}

void Scanner::expected(std::string_view what) const {
  std::string_view found = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
  found = found.substr(0, 20);
  wrong(at_, found.empty() ? text("expected ", what, ", found the end of the line")
                           : text("expected ", what, ", found '", found, "'"));
}

void Scanner::wrong(std::size_t position, std::string_view message) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = position - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  fail(Fault::Usage, "graph text, line ", static_cast<std::int64_t>(line), ", column ", column,
       ": ", message);
}

}  // namespace tessera
