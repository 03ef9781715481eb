#pragma once
/// Runs a template.

#include <cstddef>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/chat/jinja/arguments.h"
#include "tessera/chat/jinja/loop.h"
#include "tessera/chat/jinja/syntax.h"

namespace tessera::jinja {

/// Variables that a block sees: its own, and those around it.
struct Scope final : Thing {
  Scope* outer = nullptr;
  std::vector<std::pair<int, Value>> values;  // by symbol
};

struct Output {
  std::string text;
  /// Bytes that {% generation %} blocks wrote.
  std::vector<std::pair<std::size_t, std::size_t>> generated;
  bool generation_elsewhere = false;  // in a macro or a block that was set: where is not known
};

class Evaluator {
 public:
  /// `variables`: an object. Both outlive it.
  Evaluator(const Syntax& syntax, const nlohmann::ordered_json& variables, const std::tm& now,
            const Limits& limits);
  /// Errors: PlacedProblem; Refusal.
  Output run();

 private:
  enum class Flow { On, Break, Continue };
  Value from_json(const nlohmann::ordered_json& json);

  Flow body(const Body& body, Scope& scope);
  Flow statement(const Statement& statement, Scope& scope);
  Flow if_(const Statement& statement, Scope& scope);
  Flow for_(const Statement& statement, Scope& scope);
  void set(const Statement& statement, Scope& scope);
  void set_block(const Statement& statement, Scope& scope);
  void macro(const Statement& statement, Scope& scope);
  void generation(const Statement& statement, Scope& scope);
  std::string captured(const Body& body, Scope& scope);
  void assign(const Target& target, const Value& value, Scope& scope);
  void append(std::string_view text);

  Value evaluate(const Expression& e, Scope& scope);
  Value name(const Expression& e, Scope& scope);
  Value list(const Expression& e, Scope& scope);
  Value dict(const Expression& e, Scope& scope);
  Value slice(const Expression& e, Scope& scope);
  Value call(const Expression& e, Scope& scope);
  Value call_macro(const FunctionValue& function, const Arguments& arguments);
  Value filter(const Expression& e, const Value& value, Scope& scope);
  Value test(const Expression& e, Scope& scope);
  Value compared(const Expression& e, Scope& scope);
  Value concat(const Expression& e, Scope& scope);
  Arguments arguments(const Expression& e, Scope& scope);

  Scope& inner(Scope& outer);
  Value* find(int symbol, Scope& scope);
  void put(int symbol, const Value& value, Scope& scope);

  const Syntax& syntax_;
  const std::tm& now_;
  Heap heap_;
  Scope globals_;
  Output out_;
  std::string* text_ = &out_.text;  // what is written to
  Place at_;
};

}  // namespace tessera::jinja
