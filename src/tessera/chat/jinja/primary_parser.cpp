#include <charconv>

#include "tessera/chat/jinja/expression_parser.h"

namespace tessera::jinja {

namespace {

bool is_keyword_constant(const std::string& name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

/// Names that Jinja gives a meaning, and that are not supported.
constexpr std::string_view kOthers[] = {"cycler", "joiner", "lipsum",  "self",
                                        "super",  "caller", "varargs", "kwargs"};

}  // namespace

ExpressionPtr ExpressionParser::primary() {
  const Place place = now().place;
  if (now().kind == TokenKind::String) return literal_text();
  if (now().kind == TokenKind::Int || now().kind == TokenKind::Float) return number();
  if (now().kind == TokenKind::Name) {
    const std::string name = take().text;
    if (is_keyword_constant(name)) {
      ExpressionPtr out = make(Is::Constant, place);
      const bool is_none = name == "none" || name == "None";
      out->constant = is_none ? none() : value_of(name == "true" || name == "True");
      return out;
    }
    for (const std::string_view other : kOthers) {
      if (name == other) bad_at(place, "'", name, "' is not supported");
    }
    ExpressionPtr out = make(Is::Name, place);
    out->symbol = symbol(name);
    out->name = name;
    return out;
  }
  if (take_operator("(")) {
    ExpressionPtr out = tuple(true, true);
    expect_operator(")");
    return out;
  }
  if (take_operator("[")) {
    std::vector<ExpressionPtr> parts;
    while (!now().is_operator("]")) {
      parts.push_back(expression());
      if (!take_operator(",")) break;
    }
    expect_operator("]");
    return with(make(Is::List, place), std::move(parts));
  }
  if (now().is_operator("{")) return dict();
  unexpected("an expression");
}

ExpressionPtr ExpressionParser::literal_text() {
  ExpressionPtr out = make(Is::Constant, now().place);
  while (now().kind == TokenKind::String) out->text.bytes += take().text;
  out->constant.kind = Kind::Text;
  out->constant.text = &out->text;
  return out;
}

ExpressionPtr ExpressionParser::number() {
  ExpressionPtr out = make(Is::Constant, now().place);
  const Token token = take();
  const char *const begin = token.text.data(), *const end = begin + token.text.size();
  if (token.kind == TokenKind::Int) {
    std::int64_t whole = 0;
    if (std::from_chars(begin, end, whole).ec != std::errc())
      bad_at(token.place, "the number ", token.text, " is too large; it is not supported");
    out->constant = value_of(whole);
  } else {
    double real = 0;
    if (std::from_chars(begin, end, real).ec != std::errc())
      bad_at(token.place, "the number ", token.text, " is out of range; it is not supported");
    out->constant = value_of(real);
  }
  return out;
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr out = make(Is::Dict, now().place);
  take();
  std::vector<ExpressionPtr> parts;
  while (!now().is_operator("}")) {
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
    if (!take_operator(",")) break;
  }
  expect_operator("}");
  return with(std::move(out), std::move(parts));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  while (true) {
    if (now().is_operator(".")) {
      ExpressionPtr out = make(Is::Attribute, take().place);
      std::vector<ExpressionPtr> parts;
      parts.push_back(std::move(value));
      if (now().kind == TokenKind::Int) {
        out->is = Is::Item;
        parts.push_back(number());
      } else {
        out->name = expect_name("the name of an attribute");
        if (out->name.starts_with("__"))
          bad_at(out->place, "the attribute '", out->name, "' is not supported");
      }
      value = with(std::move(out), std::move(parts));
    } else if (now().is_operator("[")) {
      value = item(std::move(value));
    } else if (now().is_operator("(")) {
      ExpressionPtr out = make(Is::Call, now().place);
      arguments(*out);
      std::vector<ExpressionPtr> parts = std::move(out->parts);
      parts.insert(parts.begin(), std::move(value));
      value = with(std::move(out), std::move(parts));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::item(ExpressionPtr value) {
  ExpressionPtr out = make(Is::Item, take().place);
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(value));
  const auto bound = [&]() -> ExpressionPtr {
    const bool left_out = now().is_operator(":") || now().is_operator("]");
    return left_out ? nullptr : expression();
  };
  parts.push_back(bound());
  if (now().is_operator(":")) {
    out->is = Is::Slice;
    for (int i = 0; i < 2; ++i) parts.push_back(take_operator(":") ? bound() : nullptr);
  } else if (!parts[1]) {
    unexpected("an expression");
  }
  if (now().is_operator(",")) bad_at(now().place, "several indexes are not supported");
  expect_operator("]");
  return with(std::move(out), std::move(parts));
}

}  // namespace tessera::jinja
