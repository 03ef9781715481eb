#pragma once
/// Attributes of nodes: named small values that print, parse, compare and hash.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/shared.h"
#include "tessera/tensor/dtype.h"

namespace tessera {

class Graph;

enum class AttrKind : std::uint8_t { Int, Float, Bool, Text, Ints, Floats, DType, Graph };

/// The declaration of one attribute of an op.
struct AttrDef {
  static constexpr int kNoDim = -99, kNamedDim = -98, kEveryDim = -97;
  std::string_view name;
  AttrKind kind = AttrKind::Int;
  /// Of an Int that is the size of a dim of result 0: which dim (-1: the last; kNamedDim: the one
  /// that the attribute "dim" names). Of Ints that are its shape: kEveryDim. On a shard they are
  /// the shard's.
  int size_of_dim = kNoDim;
  /// A node may lack it, with all that follow it.
  bool optional = false;
};

/// The attribute of an op that is told the shape of result 0.
inline constexpr AttrDef kShapeOfResult = {"shape", AttrKind::Ints, AttrDef::kEveryDim};

/// The attributes that an op declares: a list of fixed capacity, so that an op table entry is a
/// constant.
class AttrDefs {
 public:
  static constexpr std::size_t kMax = 12;
  constexpr AttrDefs() = default;
  constexpr AttrDefs(std::initializer_list<AttrDef> defs) {
    for (const AttrDef& def : defs) defs_[size_++] = def;
  }
  constexpr const AttrDef* begin() const { return defs_.data(); }
  constexpr const AttrDef* end() const { return defs_.data() + size_; }
  constexpr std::size_t size() const { return size_; }
  constexpr const AttrDef& operator[](std::size_t i) const { return defs_[i]; }
  /// True if a node may have this many values.
  constexpr bool allow(std::size_t values) const {
    return values <= size_ && (values == size_ || defs_[values].optional);
  }
  /// Its place in the list, or -1.
  constexpr int find(std::string_view name) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (defs_[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }
  /// The place of the one that is the shape of result 0, or -1.
  constexpr int shape_of_result() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (defs_[i].size_of_dim == AttrDef::kEveryDim) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  std::array<AttrDef, kMax> defs_{};
  std::size_t size_ = 0;
};

/// A value of an attribute. The alternatives are in the order of AttrKind.
using AttrValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                               std::vector<double>, DType, std::shared_ptr<const Graph>>;

/// The values of a node's attributes, in the order in which its op declares them. Copies share
/// them.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<AttrValue> values) : Attrs(std::vector<AttrValue>(values)) {}
  explicit Attrs(std::vector<AttrValue> values) : values_(std::move(values)) {}

  std::size_t size() const { return values_ ? values_->size() : 0; }
  const AttrValue* begin() const { return values_ ? values_->data() : nullptr; }
  const AttrValue* end() const { return begin() + size(); }
  const AttrValue& operator[](std::size_t i) const { return (*values_)[i]; }
  /// The same with another value at place `i`, which may be one past the last.
  Attrs with(std::size_t i, AttrValue value) const;
  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  Shared<std::vector<AttrValue>> values_;  // null: none
};

/// Floats are compared bit by bit (0 is not -0, NaN is NaN), graphs by what they hold.
bool same_attr(const AttrValue& a, const AttrValue& b);

/// 12, 0.5, true, "text", [1,2], [1,0.5], f32; a graph is in braces, one node per line.
std::string to_text(const AttrValue& value);
/// Reads what to_text writes, for any kind but Graph.
AttrValue parse_attr(AttrKind kind, std::string_view line);

/// "a \"text\"", on one line whatever it holds; and back.
std::string quoted(std::string_view line);
std::string unquoted(std::string_view line);

}  // namespace tessera
