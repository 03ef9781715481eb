#pragma once
/// Strips: a value that is much wider than what it is computed of, such as the logits of a large
/// vocabulary, is never there as a whole. Only some of its rows are, at a time.

#include "tessera/passes/program.h"

namespace tessera {

/// Which values are worth it.
struct StripLimits {
  std::int64_t least_bytes = std::int64_t{32} << 20;  // of the value on a rank
  // Least rows of a strip in f32: products of fewer rows run slower. A strip of 16-bit floats,
  // which are multiplied faster and are smaller, has at least twice as many.
  std::int64_t least_rows = 256;
  std::int64_t most_strips = 8;  // a gradient that they add up is read and written once for each
};

/// Looks at the values that Forward hands over to Backward, in each chunk, and takes the largest
/// for which the limits hold and that is far larger than what it is made of. What Forward makes of
/// it moves to Backward (defer.h), and there all that reads or makes it is computed strip by strip:
/// for the logits of a language model their product, the loss of each row, their gradient, and what
/// the layers before get of that. Operands are sliced along the outermost dim of more than one
/// element. What is computed for each row is joined again. What is summed over rows, as the
/// gradient of a weight, is added up, by the op itself if it can (OpDef::onto). The results are the
/// same, but for the order of these sums.
///
/// A program stays as it is where the value is read or made by something that cannot be cut along
/// that dim (cut.h): a collective in between, as with a vocabulary that is split over ranks;
/// padding in the dim; a schedule that computes gradients of weights later. Sums in 16 bits are
/// made in f32 and rounded behind the last strip; where they take as much memory as strips save,
/// nothing is cut. Nor is anything where a 16-bit copy of a weight, in a step of one micro-batch,
/// or a gathered weight takes as much: without strips, the last product that reads it comes before
/// the product that makes its gradient, whose memory it may leave; strips need both at once.
///
/// In, out: regions in Form::Local, as partition makes them.
Program strips(Program program, const StripLimits& limits = {});

}  // namespace tessera
