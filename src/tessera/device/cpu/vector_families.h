#pragma once
/// The makers of the vector kernels, one per file; each returns null where it does not accept the
/// case.

#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/vector_tiles.h"

namespace tessera::cpu {

/// The ops that make_elementwise makes a kernel of, where it has a function for their dtypes.
bool is_elementwise(const OpDef& op);
std::unique_ptr<Kernel> make_elementwise(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_dropout(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_random(const KernelRequest& request,
                                    Pool& pool);  // random_normal, random_uniform, truncated
/// Of an op that works row by row: norms, their gradients, sums over leading dims.
std::unique_ptr<Kernel> make_rows(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_softmax(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_cross_entropy(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_cross_entropy_grad(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_reduce(const KernelRequest& request,
                                    Pool& pool);  // sum, max, min, sum_squares
std::unique_ptr<Kernel> make_adam(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_lamb(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_sgd(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_rope(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_merge_attention(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_gather(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_pick(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_scatter_add(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_top_k(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_copy(const KernelRequest& request,
                                  Pool& pool);  // reshape, transpose, slice, pad, concat, shard
std::unique_ptr<Kernel> make_clear_padding(const KernelRequest& request, Pool& pool);
std::unique_ptr<Kernel> make_dynamic_update(const KernelRequest& request, Pool& pool);

/// Functions for programs of tiles: of an op that works row by row (null: there is none), and of a
/// dropout whose program runs over `shard`.
Tiling row_tiling(const OpCall& call);
Tiling dropout_tiling(const OpCall& call, std::uint64_t key, const ShardInfo& shard);

// Conditions that makers share.
bool all_dense(const KernelRequest& request);
bool first_are_f32(const KernelRequest& request, int count);

}  // namespace tessera::cpu
