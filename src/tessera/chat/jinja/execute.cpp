#include <memory>
#include <utility>

#include "tessera/chat/jinja/evaluate.h"
#include "tessera/chat/jinja/filters.h"
#include "tessera/chat/jinja/value_text.h"

namespace tessera::jinja {

Evaluator::Evaluator(const Syntax& syntax, const nlohmann::ordered_json& variables,
                     const std::tm& now, const Limits& limits)
    : syntax_(syntax), now_(now), heap_(limits) {
  try {
    for (std::size_t i = 0; i < syntax.symbols.size(); ++i) {
      const auto at = variables.find(syntax.symbols[i]);
      if (at != variables.end()) globals_.values.emplace_back(static_cast<int>(i), from_json(*at));
    }
  } catch (const Problem& problem) {
    throw PlacedProblem(at_, problem.what());
  }
}

Output Evaluator::run() try {
  body(syntax_.body, inner(globals_));
  return std::move(out_);
} catch (const Problem& problem) {
  throw PlacedProblem(at_, problem.what());
}

void Evaluator::append(std::string_view text) {
  heap_.spend(1 + std::ssize(text) / 64, std::ssize(text));
  *text_ += text;
}

Evaluator::Flow Evaluator::body(const Body& body, Scope& scope) {
  for (const Statement& one : body) {
    if (const Flow flow = statement(one, scope); flow != Flow::On) return flow;
  }
  return Flow::On;
}

Evaluator::Flow Evaluator::statement(const Statement& s, Scope& scope) {
  const Deeper deeper(heap_);
  at_ = s.place;
  using Is = Statement::Is;
  switch (s.is) {
    case Is::Text: append(s.text); break;
    case Is::Output: {
      const Value value = evaluate(*s.expressions[0], scope);
      at_ = s.place;
      append(str(heap_, value));
      break;
    }
    case Is::If: return if_(s, scope);
    case Is::For: return for_(s, scope);
    case Is::Set: set(s, scope); break;
    case Is::SetBlock: set_block(s, scope); break;
    case Is::Macro: macro(s, scope); break;
    case Is::Generation: generation(s, scope); break;
    case Is::Break: return Flow::Break;
    case Is::Continue: return Flow::Continue;
  }
  return Flow::On;
}

Evaluator::Flow Evaluator::if_(const Statement& s, Scope& scope) {
  std::size_t i = 0;
  while (i < s.expressions.size() && !is_true(evaluate(*s.expressions[i], scope))) ++i;
  return i < s.bodies.size() ? body(s.bodies[i], scope) : Flow::On;
}

Evaluator::Flow Evaluator::for_(const Statement& s, Scope& scope) {
  const Value over = evaluate(*s.expressions[0], scope);
  at_ = s.place;
  auto items = std::make_shared<std::vector<Value>>(items_of(heap_, over));
  LoopValue& loop = *heap_.keep(std::make_unique<LoopValue>());
  loop.count = std::ssize(*items);
  loop.filtered = s.expressions.size() > 1;
  loop.fetch = [this, items, &s, &scope, at = std::size_t{0}]() mutable -> std::optional<Value> {
    while (at < items->size()) {
      const Value item = (*items)[at++];
      if (s.expressions.size() == 1) return item;
      Scope& judged = inner(scope);
      assign(s.target, item, judged);
      if (is_true(evaluate(*s.expressions[1], judged))) return item;
    }
    return std::nullopt;
  };
  Value self;
  self.kind = Kind::Loop;
  self.loop = &loop;
  bool any = false;  // as Jinja has it: a body that ran to its end
  while (loop.advance()) {
    heap_.spend(1);
    Scope& own = inner(scope);
    put(s.symbol, self, own);
    at_ = s.place;
    assign(s.target, *loop.now, own);
    const Flow flow = body(s.bodies[0], own);
    any = any || flow == Flow::On;
    if (flow == Flow::Break) break;
  }
  if (any || s.bodies.size() < 2) return Flow::On;
  return body(s.bodies[1], inner(scope));
}

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value* const space = find(target.symbols[0], scope);
    if (space == nullptr || !space->is(Kind::Space))
      bad("'", target.attribute, "' is set of ", space == nullptr ? "nothing" : kind_text(*space),
          "; only attributes of namespaces can be set");
    for (auto& [name, there] : space->space->entries) {
      if (name == target.attribute) {
        there = value;
        return;
      }
    }
    heap_.spend(1, sizeof(Value) + 32);
    space->space->entries.emplace_back(target.attribute, value);
    return;
  }
  if (!target.unpacks) return put(target.symbols[0], value, scope);
  const std::vector<Value> parts = items_of(heap_, value);
  if (parts.size() != target.symbols.size())
    bad(parts.size(), " values are unpacked to ", target.symbols.size(), " names");
  for (std::size_t i = 0; i < parts.size(); ++i) put(target.symbols[i], parts[i], scope);
}

void Evaluator::set(const Statement& s, Scope& scope) {
  const Value value = evaluate(*s.expressions[0], scope);
  at_ = s.place;
  assign(s.target, value, scope);
}

std::string Evaluator::captured(const Body& what, Scope& scope) {
  std::string out;
  std::string* const before = std::exchange(text_, &out);
  body(what, scope);
  text_ = before;
  return out;
}

void Evaluator::set_block(const Statement& s, Scope& scope) {
  Value value = heap_.text(captured(s.bodies[0], inner(scope)));
  // Filters are a chain whose innermost has no part of its own.
  std::vector<const Expression*> chain;
  for (const Expression* f = s.expressions[0].get(); f != nullptr; f = f->parts[0].get())
    chain.push_back(f);
  for (std::size_t i = chain.size(); i-- > 0;) value = filter(*chain[i], value, scope);
  assign(s.target, value, scope);
}

void Evaluator::macro(const Statement& s, Scope& scope) {
  auto made = std::make_unique<FunctionValue>();
  made->name = s.text;
  made->macro = &s;
  made->scope = &scope;
  Value value;
  value.kind = Kind::Function;
  value.function = heap_.keep(std::move(made));
  put(s.symbol, value, scope);
}

void Evaluator::generation(const Statement& s, Scope& scope) {
  const bool on_top = text_ == &out_.text;
  if (!on_top) out_.generation_elsewhere = true;
  const std::size_t begin = text_->size();
  body(s.bodies[0], inner(scope));
  if (on_top) out_.generated.emplace_back(begin, text_->size());
}

}  // namespace tessera::jinja
