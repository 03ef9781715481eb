#pragma once
/// Several ops run as one pass over memory: intermediate results are never written there.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// `body` applied to `ins`. Operand i is its batch input text(i); its Metric outputs, in order, are
/// the results. The body holds constants, elementwise ops, random ones too, and ops that work row
/// by row (OpDef::row_dims). All of them run over one shape, that of the results of elementwise
/// ops; other results are sums over the rows, or one number for each. Errors: operands whose types
/// are not those of the body's inputs.
std::vector<Value> fused(const std::vector<Value>& ins, std::shared_ptr<const Graph> body,
                         Where where = {});

/// Operands of a call, each of which result 0 may take the place of.
inline constexpr std::size_t kMostFusedOperands = decltype(OpDef::in_place){}.size();

/// What a body runs over: its shape, and how many last dims of it are a row; 0: there are no rows.
struct BodySpace {
  /// What a value of a body holds.
  enum class Each : std::uint8_t {
    Element,  // a number for each element of the shape
    Row,      // one for each row: the row's dims are 1
    Whole,    // the same row for all, or a scalar; as a result, a sum over the rows
  };
  Shape shape;
  int row_dims = 0;

  /// Nothing where a value of that shape is none of them.
  std::optional<Each> each(const Shape& value) const;
};
BodySpace space_of_body(const Graph& body);

/// The operand of the call that a batch input of the body stands for. Errors: it is none of
/// `num_in`.
int operand_of_body(const Node& input, int num_in);

/// True of calls that a body may hold, beside constants.
bool may_be_fused(const OpCall& call);
/// How many last dims of operand 0 are a row to this call; 0: it does not work row by row.
int row_dims_of(const OpCall& call);

extern const OpDef kFused;

}  // namespace tessera
