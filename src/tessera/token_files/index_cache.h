#pragma once
/// Files of indices, as megatron-core keeps them: where they lie, and whether they can be used.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/function_ref.h"
#include "tessera/token_files/npy.h"

namespace tessera {

struct IndexArray {
  const char* name;                      // "document_index.npy"
  std::vector<std::int64_t> shape = {};  // that it must have
  bool more_rows = false;                // it may have more rows than that
};

/// Arrays that are kept together, each in a file FOLDER/HASH-ENDING-NAME.
struct IndexSet {
  std::string folder;
  std::string ending;       // "GPTDataset-train"
  std::string description;  // what the arrays depend on: a JSON text, whose MD5 is HASH
  std::vector<IndexArray> arrays;
  std::string prefix;  // token files of which they are made; empty: of the description alone
};

/// FOLDER/HASH-ENDING-, to which the names are added, and "description.txt".
std::string index_base(const IndexSet& set);

/// The arrays of the set, in its order: those that lie in files, or else those that `make` makes,
/// which are written there, the description last. What the user is to know is added to `notices`:
/// that files are made anew, because they are damaged, of another shape or older than the token
/// files, or that they cannot be written.
///
/// Digests are kept beside the files. Files without, which megatron-core writes, are taken if they
/// are equal to what `make` makes, and get them.
///
/// The description names tokenizers, on which the arrays do not depend: files of a description that
/// differs in these alone are taken too.
std::vector<IntegerArray> kept_indices(const IndexSet& set,
                                       FunctionRef<std::vector<IntegerArray>()> make,
                                       std::vector<std::string>& notices);

}  // namespace tessera
