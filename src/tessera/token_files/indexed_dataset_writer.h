#pragma once
/// Writes token files: the same bytes as Megatron-LM's builder.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/files/file.h"
#include "tessera/token_files/indexed_dataset.h"

namespace tessera {

/// PREFIX.bin and PREFIX.idx, which appear when both are complete (files/file.h). Of the tokens
/// nothing stays in memory; of each sequence 4 bytes do, and of each document 8.
class IndexedDatasetWriter {
 public:
  /// Errors: Fault::Resource: a file that cannot be made. Broken: a type that is no integer.
  IndexedDatasetWriter(const std::string& prefix, TokenType type);

  /// One sequence. Errors: Broken: an id that the type does not hold, more than 2^31 - 1 tokens.
  void add_sequence(std::span<const std::int32_t> ids);
  /// The sequences since the last call are a document, also if there are none.
  void end_document();
  /// The sequences of a document that lie back to back in `ids`, `lengths` tokens each.
  void add_document(std::span<const std::int32_t> ids, std::span<const std::int32_t> lengths);

  std::int64_t num_sequences() const { return std::ssize(lengths_); }
  std::int64_t num_documents() const { return std::ssize(boundaries_) - 1; }
  std::int64_t num_tokens() const { return tokens_; }

  /// Writes the index and puts both files in place. Nothing is added then.
  void finish();

 private:
  void flush_block();

  TokenType type_;
  AtomicFile bin_, index_;
  std::vector<std::byte> block_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> boundaries_ = {0};
  std::int64_t tokens_ = 0;
};

}  // namespace tessera
