#include "tessera/chat/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "tessera/chat/jinja/filters.h"
#include "tessera/chat/jinja/tests.h"

namespace tessera::jinja {

namespace {

struct OneDeeper {
  explicit OneDeeper(ExpressionParser& parser) : parser(parser) { parser.enter(); }
  ~OneDeeper() { parser.leave(); }
  OneDeeper(const OneDeeper&) = delete;
  OneDeeper& operator=(const OneDeeper&) = delete;
  ExpressionParser& parser;
};

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::End: return "the end of the template";
    case TokenKind::Data: return "text";
    case TokenKind::OutputBegin: return "'{{'";
    case TokenKind::OutputEnd: return "'}}'";
    case TokenKind::BlockBegin: return "'{%'";
    case TokenKind::BlockEnd: return "'%}'";
    case TokenKind::String: return "a string";
    default: return text("'", token.text, "'");
  }
}

}  // namespace

const Token& ExpressionParser::after(std::size_t count) const {
  return tokens_[std::min(at_ + count, tokens_.size() - 1)];
}

Token ExpressionParser::take() {
  Token out = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return out;
}

bool ExpressionParser::take_operator(std::string_view what) {
  if (!now().is_operator(what)) return false;
  take();
  return true;
}

bool ExpressionParser::take_name(std::string_view what) {
  if (!now().is_name(what)) return false;
  take();
  return true;
}

void ExpressionParser::expect_operator(std::string_view what) {
  if (!take_operator(what)) unexpected(text("'", what, "'"));
}

std::string ExpressionParser::expect_name(std::string_view what) {
  if (now().kind != TokenKind::Name) unexpected(what);
  return take().text;
}

void ExpressionParser::unexpected(std::string_view due) const {
  bad_at(now().place, "there is ", shown(now()), " where ", due, " belongs");
}

int ExpressionParser::symbol(const std::string& name) {
  return symbols_.try_emplace(name, static_cast<int>(symbols_.size())).first->second;
}

std::vector<std::string> ExpressionParser::symbols() const {
  std::vector<std::string> out(symbols_.size());
  for (const auto& [name, number] : symbols_) out[static_cast<std::size_t>(number)] = name;
  return out;
}

void ExpressionParser::enter() {
  if (++depth_ > kMostSyntaxDepth)
    bad_at(now().place, "it is nested deeper than ", kMostSyntaxDepth, " levels");
}

ExpressionPtr ExpressionParser::make(Is is, const Place& place) const {
  auto out = std::make_unique<Expression>();
  out->is = is;
  out->place = place;
  return out;
}

ExpressionPtr ExpressionParser::with(ExpressionPtr out, std::vector<ExpressionPtr> parts) const {
  for (const ExpressionPtr& part : parts) {
    if (part) out->depth = std::max(out->depth, part->depth + 1);
  }
  for (const auto& [name, value] : out->named) out->depth = std::max(out->depth, value->depth + 1);
  if (out->depth > kMostSyntaxDepth)
    bad_at(out->place, "the expression has more than ", kMostSyntaxDepth, " levels");
  out->parts = std::move(parts);
  return out;
}

ExpressionPtr ExpressionParser::with(ExpressionPtr out, ExpressionPtr a, ExpressionPtr b) const {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  return with(std::move(out), std::move(parts));
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  const OneDeeper deeper(*this);
  return with_condition ? condition() : either();
}

ExpressionPtr ExpressionParser::condition() {
  ExpressionPtr value = either();
  while (now().is_name("if")) {
    ExpressionPtr out = make(Is::Condition, take().place);
    std::vector<ExpressionPtr> parts;
    parts.push_back(std::move(value));
    parts.push_back(either());
    parts.push_back(take_name("else") ? expression() : nullptr);
    value = with(std::move(out), std::move(parts));
  }
  return value;
}

ExpressionPtr ExpressionParser::either() {
  ExpressionPtr left = both();
  while (now().is_name("or")) {
    ExpressionPtr out = make(Is::Or, take().place);
    left = with(std::move(out), std::move(left), both());
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  ExpressionPtr left = negation();
  while (now().is_name("and")) {
    ExpressionPtr out = make(Is::And, take().place);
    left = with(std::move(out), std::move(left), negation());
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!now().is_name("not")) return comparison();
  const OneDeeper deeper(*this);
  ExpressionPtr out = make(Is::Not, take().place);
  std::vector<ExpressionPtr> parts;
  parts.push_back(negation());
  return with(std::move(out), std::move(parts));
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr first = sum();
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> names;
  const Place place = now().place;
  while (true) {
    static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
    const bool compares = now().kind == TokenKind::Operator &&
                          std::ranges::find(kOperators, now().text) != std::end(kOperators);
    if (compares) {
      names.push_back(take().text);
    } else if (take_name("in")) {
      names.emplace_back("in");
    } else if (now().is_name("not") && after(1).is_name("in")) {
      take(), take();
      names.emplace_back("not in");
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (parts.empty()) return first;
  parts.insert(parts.begin(), std::move(first));
  ExpressionPtr out = make(Is::Compare, place);
  out->names = std::move(names);
  return with(std::move(out), std::move(parts));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concat();
  while (now().is_operator("+") || now().is_operator("-")) {
    ExpressionPtr out = make(Is::Binary, now().place);
    out->name = take().text;
    left = with(std::move(out), std::move(left), concat());
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  ExpressionPtr first = product();
  if (!now().is_operator("~")) return first;
  ExpressionPtr out = make(Is::Concat, now().place);
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  while (take_operator("~")) parts.push_back(product());
  return with(std::move(out), std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (now().is_operator("*") || now().is_operator("/") || now().is_operator("//") ||
         now().is_operator("%")) {
    ExpressionPtr out = make(Is::Binary, now().place);
    out->name = take().text;
    left = with(std::move(out), std::move(left), power());
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (now().is_operator("**")) {
    ExpressionPtr out = make(Is::Binary, now().place);
    out->name = take().text;
    left = with(std::move(out), std::move(left), unary(true));
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr out;
  if (now().is_operator("-") || now().is_operator("+")) {
    const OneDeeper deeper(*this);
    ExpressionPtr sign = make(Is::Unary, now().place);
    sign->name = take().text;
    std::vector<ExpressionPtr> parts;
    parts.push_back(unary(false));
    out = with(std::move(sign), std::move(parts));
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out)) : std::move(out);
}

bool ExpressionParser::ends_tuple() const {
  return now().kind == TokenKind::OutputEnd || now().kind == TokenKind::BlockEnd ||
         now().is_operator(")") || now().kind == TokenKind::End;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, bool in_parentheses) {
  const Place place = now().place;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!ends_tuple()) {
    parts.push_back(expression(with_condition));
    if (!take_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.size() == 1) return std::move(parts[0]);
  if (parts.empty() && !in_parentheses) unexpected("an expression");
  return with(make(Is::Tuple, place), std::move(parts));
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value) {
  while (true) {
    if (now().is_operator("|")) {
      take();
      ExpressionPtr out = make(Is::Filter, now().place);
      out->name = expect_name("the name of a filter");
      if (!is_filter(out->name))
        bad_at(out->place, "the filter '", out->name, "' is not supported");
      std::vector<ExpressionPtr> parts;
      if (now().is_operator("(")) {
        arguments(*out);
        parts = std::move(out->parts);
      }
      parts.insert(parts.begin(), std::move(value));
      value = with(std::move(out), std::move(parts));
    } else if (value && now().is_name("is")) {
      value = test(std::move(value));
    } else if (value && now().is_operator("(")) {
      value = postfix(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  ExpressionPtr out = make(Is::Test, take().place);
  const bool negated = take_name("not");
  const Place place = now().place;
  out->name = expect_name("the name of a test");
  if (!is_test(out->name)) bad_at(place, "the test '", out->name, "' is not supported");
  std::vector<ExpressionPtr> parts;
  const TokenKind kind = now().kind;
  if (now().is_operator("(")) {
    arguments(*out);
    parts = std::move(out->parts);
  } else if ((kind == TokenKind::Name || kind == TokenKind::String || kind == TokenKind::Int ||
              kind == TokenKind::Float || now().is_operator("[") || now().is_operator("{")) &&
             !now().is_name("else") && !now().is_name("or") && !now().is_name("and")) {
    if (now().is_name("is")) bad_at(now().place, "a test follows a test; use 'and'");
    const OneDeeper deeper(*this);
    parts.push_back(postfix(primary()));
  }
  parts.insert(parts.begin(), std::move(value));
  ExpressionPtr done = with(std::move(out), std::move(parts));
  if (!negated) return done;
  ExpressionPtr no = make(Is::Not, done->place);
  std::vector<ExpressionPtr> of;
  of.push_back(std::move(done));
  return with(std::move(no), std::move(of));
}

void ExpressionParser::arguments(Expression& call) {
  expect_operator("(");
  while (!now().is_operator(")")) {
    if (now().is_operator("*") || now().is_operator("**"))
      bad_at(now().place, "'", now().text, "' before an argument is not supported");
    if (now().kind == TokenKind::Name && after(1).is_operator("=")) {
      std::string name = take().text;
      take();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (!call.named.empty())
        bad_at(now().place, "an argument without a name follows one with a name");
      call.parts.push_back(expression());
    }
    if (!take_operator(",")) break;
  }
  expect_operator(")");
}

}  // namespace tessera::jinja
