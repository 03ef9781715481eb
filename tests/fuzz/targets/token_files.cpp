/// Indices of token files: 8 bytes with the size of .bin, then .idx. An input that begins as a .npy
/// file is read as one.

#include <cstring>
#include <vector>

#include "fuzz/target.h"
#include "tessera/token_files/indexed_dataset.h"
#include "tessera/token_files/npy.h"

namespace tessera::fuzz {

namespace {

/// The numbers of a table of the index.
template <typename T>
std::vector<T> table(std::string_view index, std::int64_t at, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(out.data(), index.data() + at, out.size() * sizeof(T));
  return out;
}

void run_npy(std::string_view input) {
  std::int64_t file_bytes = 0;
  std::memcpy(&file_bytes, input.data(), sizeof file_bytes);
  input.remove_prefix(sizeof file_bytes);
  if (file_bytes < 0) fail(Fault::Data, "no file has so many bytes");
  const NpyHeader header = parse_npy_header(input.substr(0, kNpyHeaderBytes), file_bytes, "input");
  then([&] {
    const std::string written = npy_header(header.type, header.shape);
    const auto begin = static_cast<std::int64_t>(written.size());
    const NpyHeader again =
        parse_npy_header(written, begin + header.elements() * bytes_of(header.type), "written");
    check(again.type == header.type && again.shape == header.shape, "written back: ", written);
  });
}

void run(std::string_view input) {
  std::int64_t bin_bytes = 0;
  if (input.size() < sizeof bin_bytes) fail(Fault::Data, "too short");
  if (input.substr(sizeof bin_bytes).starts_with("\x93NUMPY")) return run_npy(input);
  std::memcpy(&bin_bytes, input.data(), sizeof bin_bytes);
  if (bin_bytes < 0) fail(Fault::Data, "no file has so many bytes");
  const std::string_view index = input.substr(sizeof bin_bytes);
  const IndexHeader header = parse_index_header(index, std::ssize(index), "input");
  IndexCheck checked(header, bin_bytes, "input");
  const auto lengths = table<std::int32_t>(index, header.lengths_at(), header.sequences);
  const auto pointers = table<std::int64_t>(index, header.pointers_at(), header.sequences);
  const auto boundaries = table<std::int64_t>(index, header.boundaries_at(), header.boundaries);
  checked.sequences(lengths, pointers);
  checked.boundaries(boundaries);
  checked.finish();
  then([&] {
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      tokens += lengths[i];
      check(lengths[i] >= 0 && pointers[i] >= 0 &&
                pointers[i] + lengths[i] * bytes_of(header.type) <= bin_bytes,
            "sequence ", i, " leaves .bin");
    }
    check(tokens == checked.tokens(), "tokens are ", tokens, " and ", checked.tokens());
    for (const std::int64_t sequence : boundaries)
      check(sequence >= 0 && sequence <= header.sequences, "a document begins at ", sequence);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
