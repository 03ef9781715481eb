#include "tessera/chat/jinja/evaluate.h"

#include <limits>
#include <memory>

#include "tessera/chat/jinja/filters.h"
#include "tessera/chat/jinja/methods.h"
#include "tessera/chat/jinja/operators.h"
#include "tessera/chat/jinja/tests.h"
#include "tessera/chat/jinja/value_text.h"

namespace tessera::jinja {

Scope& Evaluator::inner(Scope& outer) {
  auto made = std::make_unique<Scope>();
  made->outer = &outer;
  return *heap_.keep(std::move(made));
}

Value* Evaluator::find(int symbol, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = s->outer) {
    for (auto& [number, value] : s->values) {
      if (number == symbol) return &value;
    }
  }
  return nullptr;
}

void Evaluator::put(int symbol, const Value& value, Scope& scope) {
  for (auto& [number, there] : scope.values) {
    if (number == symbol) {
      there = value;
      return;
    }
  }
  heap_.spend(1, sizeof(Value) + 8);
  scope.values.emplace_back(symbol, value);
}

Value Evaluator::evaluate(const Expression& e, Scope& scope) {
  heap_.spend(1);
  const Deeper deeper(heap_);
  at_ = e.place;
  using Is = Expression::Is;
  const auto part = [&](std::size_t i) { return evaluate(*e.parts[i], scope); };
  switch (e.is) {
    case Is::Constant: return e.constant;
    case Is::Name: return name(e, scope);
    case Is::List:
    case Is::Tuple: return list(e, scope);
    case Is::Dict: return dict(e, scope);
    case Is::Attribute: {
      const Value of = part(0);
      at_ = e.place;
      return attribute_of(heap_, of, e.name);
    }
    case Is::Item: {
      const Value of = part(0), key = part(1);
      at_ = e.place;
      return item_of(heap_, of, key);
    }
    case Is::Slice: return slice(e, scope);
    case Is::Call: return call(e, scope);
    case Is::Filter: return filter(e, part(0), scope);
    case Is::Test: return test(e, scope);
    case Is::Unary: {
      const Value of = part(0);
      at_ = e.place;
      return unary(e.name, of);
    }
    case Is::Binary: {
      const Value a = part(0), b = part(1);
      at_ = e.place;
      return binary(heap_, e.name, a, b);
    }
    case Is::Compare: return compared(e, scope);
    case Is::And: {
      const Value a = part(0);
      return is_true(a) ? part(1) : a;
    }
    case Is::Or: {
      const Value a = part(0);
      return is_true(a) ? a : part(1);
    }
    case Is::Not: return value_of(!is_true(part(0)));
    case Is::Concat: return concat(e, scope);
    case Is::Condition:
      if (is_true(part(1))) return part(0);
      return e.parts[2] ? part(2) : Value{};
  }
  return {};
}

Value Evaluator::name(const Expression& e, Scope& scope) {
  if (const Value* const value = find(e.symbol, scope)) {
    const bool handed_over = !globals_.values.empty() && value >= &globals_.values.front().second &&
                             value <= &globals_.values.back().second;
    if (handed_over && syntax_.set_first[static_cast<std::size_t>(e.symbol)])
      bad("'", e.name, "' is read in a block before {% set ", e.name, " %} outside of blocks has ",
          "set it; rename the second");
    return *value;
  }
  if (is_function(e.name)) {
    auto made = std::make_unique<FunctionValue>();
    made->name = e.name;
    Value out;
    out.kind = Kind::Function;
    out.function = heap_.keep(std::move(made));
    return out;
  }
  Value out;
  out.missing = &e.name;
  return out;
}

Value Evaluator::list(const Expression& e, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : e.parts) items.push_back(evaluate(*part, scope));
  return heap_.list(std::move(items),
                    e.is == Expression::Is::Tuple ? ItemsValue::Of::Tuple : ItemsValue::Of::List);
}

Value Evaluator::dict(const Expression& e, Scope& scope) {
  const Value out = heap_.dict({});
  for (std::size_t i = 0; i < e.parts.size(); i += 2) {
    const Value key = evaluate(*e.parts[i], scope), value = evaluate(*e.parts[i + 1], scope);
    at_ = e.place;
    set_key(heap_, *out.dict, key, value);
  }
  return out;
}

Value Evaluator::slice(const Expression& e, Scope& scope) {
  const auto part = [&](std::size_t i) {
    return e.parts[i] ? evaluate(*e.parts[i], scope) : none();
  };
  const Value of = part(0), from = part(1), to = part(2), step = part(3);
  at_ = e.place;
  if (of.is(Kind::Undefined)) bad("a slice of ", kind_text(of));
  return slice_of(heap_, of, from, to, step);
}

Arguments Evaluator::arguments(const Expression& e, Scope& scope) {
  Arguments out;
  for (std::size_t i = 1; i < e.parts.size(); ++i)
    out.given.push_back(evaluate(*e.parts[i], scope));
  for (const auto& [name, value] : e.named) out.named.emplace_back(name, evaluate(*value, scope));
  return out;
}

Value Evaluator::call(const Expression& e, Scope& scope) {
  const Value what = evaluate(*e.parts[0], scope);
  const Arguments given = arguments(e, scope);
  at_ = e.place;
  if (!what.is(Kind::Function)) bad(kind_text(what), " is called, but is no function");
  const FunctionValue& function = *what.function;
  if (function.macro != nullptr) return call_macro(function, given);
  if (function.is_method) return call_method(heap_, function.self, function.name, given);
  return call_function(heap_, function.name, given, now_);
}

Value Evaluator::call_macro(const FunctionValue& function, const Arguments& given) {
  const Statement& macro = *function.macro;
  Scope& scope = inner(*function.scope);
  if (given.given.size() > macro.parameters.size())
    bad("the macro '", macro.text, "' has ", macro.parameters.size(), " parameters, not ",
        given.given.size());
  std::size_t used = 0;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [symbol, otherwise] = macro.parameters[i];
    const std::string& parameter = syntax_.symbols[static_cast<std::size_t>(symbol)];
    Value value;
    value.missing = &parameter;
    bool has = i < given.given.size();
    if (has) value = given.given[i];
    for (const auto& [name, named] : given.named) {
      if (name != parameter) continue;
      if (has) bad("the macro '", macro.text, "' has the argument '", name, "' twice");
      value = named;
      has = true;
      ++used;
    }
    if (!has && otherwise) value = evaluate(*otherwise, scope);
    put(symbol, value, scope);
  }
  if (used < given.named.size())
    bad("the macro '", macro.text, "' lacks one of the parameters that it is called with");
  return heap_.text(captured(macro.bodies[0], scope));
}

Value Evaluator::filter(const Expression& e, const Value& value, Scope& scope) {
  const Arguments given = arguments(e, scope);
  at_ = e.place;
  return apply_filter(heap_, e.name, value, given);
}

Value Evaluator::test(const Expression& e, Scope& scope) {
  const Value value = evaluate(*e.parts[0], scope);
  const Arguments given = arguments(e, scope);
  at_ = e.place;
  return value_of(apply_test(heap_, e.name, value, given));
}

Value Evaluator::compared(const Expression& e, Scope& scope) {
  Value left = evaluate(*e.parts[0], scope);
  for (std::size_t i = 0; i < e.names.size(); ++i) {
    const Value right = evaluate(*e.parts[i + 1], scope);
    at_ = e.place;
    if (!compare(heap_, e.names[i], left, right)) return value_of(false);
    left = right;
  }
  return value_of(true);
}

Value Evaluator::concat(const Expression& e, Scope& scope) {
  std::string out;
  for (const ExpressionPtr& part : e.parts) {
    const Value value = evaluate(*part, scope);
    at_ = e.place;
    append_str(heap_, out, value);
  }
  return heap_.text(std::move(out));
}

Value Evaluator::from_json(const nlohmann::ordered_json& json) {
  const Deeper deeper(heap_);
  switch (json.type()) {
    case nlohmann::json::value_t::null: return none();
    case nlohmann::json::value_t::boolean: return value_of(json.get<bool>());
    case nlohmann::json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        bad("the number ", json.get<std::uint64_t>(), " in the data is too large");
      [[fallthrough]];
    case nlohmann::json::value_t::number_integer: return value_of(json.get<std::int64_t>());
    case nlohmann::json::value_t::number_float: return value_of(json.get<double>());
    case nlohmann::json::value_t::string: return heap_.text(json.get_ref<const std::string&>());
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(item));
      return heap_.list(std::move(items));
    }
    case nlohmann::json::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, value] : json.items())
        entries.emplace_back(heap_.text(key), from_json(value));
      return heap_.dict(std::move(entries));
    }
    default: bad("the data has a value that is no JSON");
  }
}

}  // namespace tessera::jinja
