#pragma once
/// An op: everything known about it, in one value (the table is ops/table.cpp).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/small_vector.h"
#include "tessera/ir/attr.h"
#include "tessera/ir/factors.h"
#include "tessera/tensor/type.h"

namespace tessera {

struct OpDef;
class Builder;
class Value;
class RefCall;

/// One use of an op: the types of its operands (and of its results, once known) and its attributes.
class OpCall {
 public:
  using Types = SmallVector<const TensorType*, 4>;
  OpCall(const OpDef& op, Types ins, const Attrs& attrs, Types outs = {})
      : op_(&op), ins_(std::move(ins)), outs_(std::move(outs)), attrs_(&attrs) {}

  const OpDef& op() const { return *op_; }
  int num_in() const { return static_cast<int>(ins_.size()); }
  int num_out() const { return static_cast<int>(outs_.size()); }
  const TensorType& in(int i) const;
  const TensorType& out(int i) const;
  const Attrs& attrs() const { return *attrs_; }

  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double number(std::string_view name) const { return get<double>(name); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  const std::string& string(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  const std::vector<double>& numbers(std::string_view name) const {
    return get<std::vector<double>>(name);
  }
  DType dtype(std::string_view name) const { return get<DType>(name); }
  // Of an optional attribute: `otherwise` where the node lacks it.
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const {
    return get_or(name, otherwise);
  }
  double number_or(std::string_view name, double otherwise) const {
    return get_or(name, otherwise);
  }
  bool flag_or(std::string_view name, bool otherwise) const { return get_or(name, otherwise); }
  DType dtype_or(std::string_view name, DType otherwise) const { return get_or(name, otherwise); }
  const Graph& graph(std::string_view name) const {
    return *get<std::shared_ptr<const Graph>>(name);
  }
  const AttrValue& attr(std::string_view name) const;

  /// Operand types, then result types: what Factors::parse asks for.
  std::vector<int> ndims() const;

 private:
  template <typename T>
  const T& get(std::string_view name) const {
    return std::get<T>(attr(name));
  }
  template <typename T>
  T get_or(std::string_view name, T otherwise) const {
    return lacks(name) ? otherwise : get<T>(name);
  }
  bool lacks(std::string_view name) const;
  const OpDef* op_;
  Types ins_, outs_;
  const Attrs* attrs_;
};

/// A gradient being written: din(i) receives the cotangent of operand i, built from operands,
/// results and douts.
class GradCall {
 public:
  GradCall(const OpCall& call, std::span<const Value> ins, std::span<const Value> outs,
           std::span<const Value> douts, std::span<Value> dins, std::span<const bool> wants)
      : call(call), ins_(ins), outs_(outs), douts_(douts), dins_(dins), wants_(wants) {}

  const OpCall& call;
  int num_in() const { return static_cast<int>(ins_.size()); }
  Value in(int i) const;
  Value out(int i) const;
  bool has_dout(int i) const;
  /// The cotangent of result i. Errors: there is none (ask has_dout first where a result may be
  /// unused).
  Value dout(int i) const;
  Value& din(int i);
  /// True where the cotangent of operand i is asked for; others need not be built.
  bool wants(int i) const { return wants_[static_cast<std::size_t>(i)]; }

 private:
  std::span<const Value> ins_, outs_, douts_;
  std::span<Value> dins_;
  std::span<const bool> wants_;
};

/// An expansion being written: out(i) receives the value that result i has, built from ops without
/// `stat` factors.
class ExpandCall {
 public:
  ExpandCall(const OpCall& call, std::span<const Value> ins, std::span<Value> outs)
      : call(call), ins_(ins), outs_(outs) {}

  const OpCall& call;
  int num_in() const { return static_cast<int>(ins_.size()); }
  Value in(int i) const;
  Value& out(int i);

 private:
  std::span<const Value> ins_;
  std::span<Value> outs_;
};

/// Result `result` may lie in the buffer of `operand`: element i is written after operand element i
/// was last read.
struct InPlace {
  std::int8_t result = -1, operand = -1;
};

/// Result 0 as a window on operand 0's elements: strides and offset in elements of operand 0, which
/// lies at `strides_in`.
struct View {
  std::int64_t offset = 0;
  Shape strides;
};

using RefFunction = void (*)(RefCall&);
struct Reference {
  RefFunction
      f32 = nullptr,
      f64 = nullptr;  // floats are computed in this type; integers and bools are what they are
};

/// How an op is treated beyond its columns; each is the condition under which it holds.
struct Traits {
  bool leaf = false;         // nothing computes it: a batch input, state, slot, message or constant
  bool elementwise = false;  // each result element depends on the operand elements that broadcast
                             // to it: may be fused
  bool by_place = false;     // an element also depends on where it lies in the whole tensor: random
                             // numbers, causal masks, indices
  bool inserted = false;     // by passes, never by models: it moves, clears or packs a value
  bool stops_gradient = false;  // nothing below it gets one
  bool exchanges = false;       // ranks act together: there is no kernel, `comm` does it
};

/// In which floats an op computes where the program does so in 16 bits (passes/compute_in.h).
enum class Arithmetic : std::uint8_t {
  AsOperands,  // in 16 bits where one of its operands has them
  Narrow,      // in 16 bits: products, which take most of the time
  Wide,        // in f32: where small differences of large numbers count
  FromAny,     // reads either, in the update too, with an f32 result
};

/// Of m x k times k x n.
struct ProductSize {
  double m = 0, n = 0, k = 0;
  bool attention = false;  // the product is that of queries and keys, and the op does all the rest
};

struct OpDef {
  std::string_view name;
  std::string_view doc;  // one line
  AttrDefs attrs{};
  /// Types of the results. Errors name the op, the operands' types and what to do.
  TensorTypes (*infer)(const OpCall&) = nullptr;
  /// The factor rule; called when result types are known.
  Factors (*factors)(const OpCall&) = nullptr;
  /// Required where a rule has a stat factor, or a backend has no other way to compute it.
  void (*expand)(ExpandCall&) = nullptr;
  /// Null: not differentiable, its operands get no cotangent.
  void (*grad)(GradCall&) = nullptr;
  /// Floating point operations; null counts none.
  double (*flops)(const OpCall&) = nullptr;
  /// The largest matrix product that it is made of, for an op whose operations are such; else null.
  ProductSize (*product)(const OpCall&) = nullptr;
  /// Bytes read and written; null: every operand and every result once.
  double (*bytes)(const OpCall&) = nullptr;
  Reference reference{};
  /// The operand in whose padding may lie anything: the table of gather and pick, which is read at
  /// indices only; the ids of scatter_add, whose rows are zeros there. -1: none.
  std::int8_t any_padding = -1;
  std::array<InPlace, 12> in_place{};  // unused entries have result -1
  /// The operand, which a node may lack, that result 0 is added onto: a sum can then be made of
  /// several calls without room for its terms. -1: there is none.
  std::int8_t onto = -1;
  /// Result 0 as a view of operand 0 (which lies dense or at the given strides); nullopt: it must
  /// be copied.
  std::optional<View> (*view)(const OpCall&, const Shape& strides_in) = nullptr;
  /// Of an op that works row by row: how many last dims of operand 0 are a row to this call; 0: it
  /// does not so here. Each other operand has the shape of operand 0, or one number for each row
  /// (its last dims are 1), or no dims but the row's: then it is the same for all rows. So has each
  /// result; one without dims before the row's is a sum over all rows.
  int (*row_dims)(const OpCall&) = nullptr;
  /// Of an op whose result 0 holds each operand as one run of elements: where that of operand i
  /// begins, in elements. The planner has operands computed there, where it can. Null: no such op.
  std::int64_t (*part)(const OpCall&, int operand) = nullptr;
  Traits traits{};
  /// Bit i, of an elementwise op: its result is zero where operand i is.
  std::uint32_t zero_where = 0;
  Arithmetic arithmetic = Arithmetic::AsOperands;
  /// Bit i: operand i is a statistic of others, and an f32 where these are 16-bit floats.
  std::uint32_t statistics = 0;
};

/// Bytes read and written by one call, each once: its column, or all operands and results.
double bytes_moved(const OpCall& call);

}  // namespace tessera
