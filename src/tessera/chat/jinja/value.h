#pragma once
/// Values of templates, and the memory that they live in.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/chat/jinja/place.h"

namespace tessera::jinja {

struct TextValue;
struct ItemsValue;
struct DictValue;
struct SpaceValue;
struct LoopValue;
struct FunctionValue;

enum class Kind : std::uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  Text,
  Items,
  Dict,
  Space,
  Loop,
  Function
};

/// A value is a number, or a thing that a Heap owns, or a constant of the template.
struct Value {
  Kind kind = Kind::Undefined;
  union {
    const std::string* missing = nullptr;  // what is not there, for messages; or nullptr
    bool truth;
    std::int64_t whole;
    double real;
    const TextValue* text;
    ItemsValue* items;
    DictValue* dict;
    SpaceValue* space;
    LoopValue* loop;
    const FunctionValue* function;
  };

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::Bool || kind == Kind::Int || kind == Kind::Float; }
  bool is_whole() const { return kind == Kind::Bool || kind == Kind::Int; }
  /// Of a number.
  std::int64_t as_whole() const { return kind == Kind::Bool ? std::int64_t{truth} : whole; }
  double as_real() const { return kind == Kind::Float ? real : static_cast<double>(as_whole()); }
};

Value none();
Value value_of(bool truth);
Value value_of(std::int64_t whole);
Value value_of(double real);

struct Thing {
  virtual ~Thing() = default;
};

struct TextValue final : Thing {
  std::string bytes;  // UTF-8
  bool safe = false;  // by the filter `safe`: "+" escapes what is joined to it
};

struct ItemsValue final : Thing {
  enum class Of : std::uint8_t { List, Tuple, Range, View, Generator };
  Of of = Of::List;
  std::vector<Value> items;
  std::size_t taken = 0;  // of a generator, which gives each item once
};

struct DictValue final : Thing {
  std::vector<std::pair<Value, Value>> entries;
};

/// namespace(...)
struct SpaceValue final : Thing {
  std::vector<std::pair<std::string, Value>> entries;
};

struct Statement;
struct Scope;

struct FunctionValue final : Thing {
  std::string name;  // of a function or method
  Value self;        // of a method
  bool is_method = false;
  const Statement* macro = nullptr;  // of a macro, with the scope where it stands
  Scope* scope = nullptr;
};

/// What running a template may take.
struct Limits {
  std::int64_t steps = 10'000'000;
  std::int64_t bytes = 256 << 20;  // of values, over the whole run
  int depth = 300;                 // of expressions, blocks, calls and lists within others
};

/// Owns what values point to, and counts what a run takes. Errors of all that spends: Problem.
class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}

  Value text(std::string bytes, bool safe = false);
  Value list(std::vector<Value> items, ItemsValue::Of of = ItemsValue::Of::List);
  Value dict(std::vector<std::pair<Value, Value>> entries);
  template <typename T>
  T* keep(std::unique_ptr<T> thing) {
    spend(1, sizeof(T) + 16);
    T* const out = thing.get();
    things_.push_back(std::move(thing));
    return out;
  }

  void spend(std::int64_t steps, std::int64_t bytes = 0);
  /// Bytes that a text may still take.
  std::int64_t room() const { return limits_.bytes - bytes_; }
  void enter() {
    if (++depth_ > limits_.depth) bad("it is nested deeper than ", limits_.depth, " levels");
  }
  void leave() { --depth_; }

 private:
  Limits limits_;
  std::int64_t steps_ = 0, bytes_ = 0;
  int depth_ = 0;
  std::vector<std::unique_ptr<Thing>> things_;
};

/// One level deeper while it lives.
class Deeper {
 public:
  explicit Deeper(Heap& heap) : heap_(heap) { heap.enter(); }
  ~Deeper() { heap_.leave(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Heap& heap_;
};

/// "a text", "a list" for messages; of what is not there: its name.
std::string kind_text(const Value& value);

bool is_true(const Value& value);
bool is_equal(Heap& heap, const Value& a, const Value& b);
/// Below 0: a comes first. Errors: Problem: these have no order.
int order_of(Heap& heap, const Value& a, const Value& b);
bool contains(Heap& heap, const Value& all, const Value& one);

/// The value of a key; nullptr: it is not there.
Value* find_key(Heap& heap, DictValue& dict, const Value& key);
Value* find_key(Heap& heap, DictValue& dict, std::string_view key);
void set_key(Heap& heap, DictValue& dict, const Value& key, const Value& value);

/// What `for` goes over, or what a list is made of. A generator gives what it has left. Errors:
/// Problem: there is nothing to go over.
std::vector<Value> items_of(Heap& heap, const Value& value);
/// len(). Errors: Problem: it has none.
std::int64_t length_of(const Value& value);

/// a.name and a[key] as Jinja has them; what is not there is undefined. Errors: Problem: `a` is
/// undefined; a method that is not supported.
Value attribute_of(Heap& heap, const Value& a, const std::string& name);
Value item_of(Heap& heap, const Value& a, const Value& key);
/// a[from:to:step]; undefined: left out.
Value slice_of(Heap& heap, const Value& a, const Value& from, const Value& to, const Value& step);

}  // namespace tessera::jinja
