#pragma once
/// Files that are no text, known by their first bytes: what they are, and what to give instead.

#include <string>
#include <string_view>

namespace tessera {

/// "a Parquet file; write it as JSON lines, ...": what `bytes`, the begin of a file or all of it,
/// are; empty: nothing that is known here, as text is.
std::string other_kind(std::string_view bytes);

/// The same of the file at `path`; and a .bin or .idx of token files, by the file beside it.
std::string other_kind_at(const std::string& path);

/// Errors: Fault::Data: `bytes`, of the file at `path`, are of such a kind.
void refuse_other_kind(std::string_view bytes, const std::string& path);

}  // namespace tessera
