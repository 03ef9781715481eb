#include "tessera/chat/jinja/tests.h"

#include <algorithm>
#include <string>

#include "tessera/chat/jinja/filters.h"
#include "tessera/chat/jinja/operators.h"

namespace tessera::jinja {

namespace {

struct Test {
  std::string_view name;
  bool (*holds)(const Value& value);
};

constexpr Test kTests[] = {
    {"defined", [](const Value& v) { return !v.is(Kind::Undefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::Undefined); }},
    {"none", [](const Value& v) { return v.is(Kind::None); }},
    {"string", [](const Value& v) { return v.is(Kind::Text); }},
    {"mapping", [](const Value& v) { return v.is(Kind::Dict); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"integer", [](const Value& v) { return v.is(Kind::Int); }},
    {"float", [](const Value& v) { return v.is(Kind::Float); }},
    {"boolean", [](const Value& v) { return v.is(Kind::Bool); }},
    {"true", [](const Value& v) { return v.is(Kind::Bool) && v.truth; }},
    {"false", [](const Value& v) { return v.is(Kind::Bool) && !v.truth; }},
    {"callable", [](const Value& v) { return v.is(Kind::Function) || v.is(Kind::Undefined); }},
    {"iterable",
     [](const Value& v) {
       return v.is(Kind::Undefined) || v.is(Kind::Text) || v.is(Kind::Items) || v.is(Kind::Dict) ||
              v.is(Kind::Loop);
     }},
    {"sequence",
     [](const Value& v) {
       const bool list = v.is(Kind::Items) && v.items->of != ItemsValue::Of::Generator &&
                         v.items->of != ItemsValue::Of::View;
       return v.is(Kind::Undefined) || v.is(Kind::Text) || list || v.is(Kind::Dict);
     }},
};

/// Tests that compare, and the operator that does it.
constexpr std::pair<std::string_view, std::string_view> kCompared[] = {
    {"eq", "=="}, {"equalto", "=="},    {"==", "=="},      {"ne", "!="}, {"!=", "!="}, {"lt", "<"},
    {"<", "<"},   {"le", "<="},         {"<=", "<="},      {"gt", ">"},  {">", ">"},   {"ge", ">="},
    {">=", ">="}, {"greaterthan", ">"}, {"lessthan", "<"}, {"in", "in"}};

const Test* find_test(std::string_view name) {
  const auto at = std::ranges::find(kTests, name, &Test::name);
  return at == std::end(kTests) ? nullptr : at;
}

bool is_remainder(std::string_view name) {
  return name == "odd" || name == "even" || name == "divisibleby";
}

}  // namespace

bool is_test(std::string_view name) {
  return find_test(name) != nullptr || is_remainder(name) || name == "filter" || name == "test" ||
         std::ranges::find(kCompared, name, [](const auto& c) { return c.first; }) !=
             std::end(kCompared);
}

bool apply_test(Heap& heap, std::string_view name, const Value& value, const Arguments& arguments) {
  heap.spend(1);
  if (const Test* const test = find_test(name)) {
    const Bound none(name, arguments, "");
    return test->holds(value);
  }
  const auto compared = std::ranges::find(kCompared, name, [](const auto& c) { return c.first; });
  if (compared != std::end(kCompared)) {
    const Bound bound(name, arguments, "other");
    return compare(heap, compared->second, value, *bound.get(0));
  }
  if (is_remainder(name)) {
    const bool by = name == "divisibleby";
    const Bound bound(name, arguments, by ? "num" : "");
    const Value rest = binary(heap, "%", value, by ? *bound.get(0) : value_of(std::int64_t{2}));
    return is_equal(heap, rest, value_of(std::int64_t{name == "odd"}));
  }
  const Bound none(name, arguments, "");
  if (name != "filter" && name != "test") bad("the test '", name, "' is not supported");
  if (!value.is(Kind::Text)) return false;
  return name == "filter" ? is_filter(value.text->bytes) : is_test(value.text->bytes);
}

}  // namespace tessera::jinja
