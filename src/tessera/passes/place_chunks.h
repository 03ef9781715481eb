#pragma once
/// Chunks: which part of a pipeline computes each node.

#include <span>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// The unit of a pipeline that a path belongs to, which is never split: a repeated block
/// ("layers.3"), or nodes outside of blocks under one name ("embed", "head"). Nodes with an empty
/// path form a unit too, named "".
std::string_view unit_of(std::string_view path);

/// One pin per unit of the model, in the order in which forward comes through them: as `pipeline`
/// has pinned them, or `.stage(k)` in the model, and all others so that the most that a chunk
/// computes is as little as it can be. Costs are FLOPs of forward and backward.
/// Errors:  more chunks than units; a chunk that no unit can have; a unit that comes behind one of
///          a later chunk.
std::vector<ChunkPin> cut_into_chunks(const Graph& graph, const PipelineStrategy& pipeline);
/// The same for programs that share their states, none of which may have all units: of a unit that
/// several have, the first one's costs count, and the others come between those of the programs
/// before, in the order in which their own has them.
std::vector<ChunkPin> cut_into_chunks(std::span<const Graph* const> programs,
                                      const PipelineStrategy& pipeline);

/// In, out: Form::Global, of a model that `pins` cut. A node's `stage` is the chunk that computes
/// it: that of its unit where it depends on a parameter; what depends on none (masks, the number of
/// labels) is computed again by every chunk that reads it. -1: every stage computes it alike, that
/// is all of Update that belongs to no unit. A sum there over values of several chunks is first
/// taken by each of them, so that one number leaves it.
/// Without pins there is one chunk: no node has a stage, whatever the model says.
/// Errors:  a value that an earlier chunk reads in forward, or a later one in backward.
Graph place_chunks(const Graph& graph, const std::vector<ChunkPin>& pins);

}  // namespace tessera
