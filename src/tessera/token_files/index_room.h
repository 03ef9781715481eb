#pragma once
/// Whether there is memory for sample indices before they are made: a run of very many steps has
/// them of all its passes over the data at once.

#include <cstdint>
#include <string>

#include "tessera/base/proc.h"
#include "tessera/token_files/gpt_indices.h"

namespace tessera {

/// Most bytes of main memory that are taken while indices of the plan are made.
std::int64_t gpt_index_bytes(const GptIndexRequest& request, const GptIndexPlan& plan);

/// `whose`: "of 'data/books'". `free`: bytes of memory; 0: nobody knows how many.
/// Errors: Fault::Resource: `bytes` is more.
void require_room_for_indices(const std::string& whose, std::int64_t samples, std::int64_t bytes,
                              std::int64_t free = free_memory_bytes());

}  // namespace tessera
