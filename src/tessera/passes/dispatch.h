#pragma once
/// Ranks that share out groups of rows send each other the rows of these alone.

#include "tessera/passes/program.h"

namespace tessera {

/// Rows that are gathered along the axes that cut the groups of grouped products, and read by these
/// alone, need not all travel: a rank reads those whose ids name its groups. What such products make
/// is zero in all other rows, so their sum over ranks need not have them either.
///
///   all_gather x, grouped_matmul          dispatch x by ids, grouped_matmul
///   grouped_matmul, reduce_scatter        grouped_matmul, combine by ids
///
/// How many rows that are is known when the ids are; the result has room for all. The mean is what
/// the calls are priced by. Sums have the same bits, but for the sign of zero, as zeros
/// do not change them.
///
/// Gathers stay where something else reads the rows, where nearly all of them are read, and where
/// they are short.
///
/// In, out: regions in Form::Local, as partition makes them.
Program dispatch(Program program);

}  // namespace tessera
