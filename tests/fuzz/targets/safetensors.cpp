/// Headers of safetensors files: 8 bytes with the size of the data, then the header.

#include <cstring>

#include "fuzz/target.h"
#include "tessera/files/safetensors.h"

namespace tessera::fuzz {

namespace {

constexpr std::int64_t kMostWritten = 1 << 16;  // data bytes of a file that is written back

/// The header and data of a file that holds the same tensors, all zero.
std::string written(const SafetensorsHeader& header) {
  std::vector<TensorSource> sources;
  for (const StoredTensor& tensor : header.tensors)
    sources.push_back({tensor.name, tensor.type, [](std::int64_t, std::span<std::byte>) {}});
  std::string out;
  const ByteSink sink = [&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  write_safetensors(sink, std::move(sources), header.metadata);
  return out;
}

SafetensorsHeader read(const std::string& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const std::string_view header = std::string_view(file).substr(sizeof size, size);
  const auto data = static_cast<std::int64_t>(file.size() - sizeof size - size);
  return parse_safetensors_header(header, data, "written");
}

void run(std::string_view input) {
  std::int64_t data_bytes = 0;
  if (input.size() < sizeof data_bytes) fail(Fault::Checkpoint, "too short to have a header");
  std::memcpy(&data_bytes, input.data(), sizeof data_bytes);
  if (data_bytes < 0) fail(Fault::Checkpoint, "no file has so many bytes");
  const SafetensorsHeader header =
      parse_safetensors_header(input.substr(sizeof data_bytes), data_bytes, "input");
  if (data_bytes > kMostWritten) return;
  then([&] {
    const std::string file = written(header);
    const SafetensorsHeader again = read(file);
    check(again.tensors.size() == header.tensors.size() && again.metadata == header.metadata,
          "the header written back holds something else: ", file);
    check(written(again) == file, "written again, the header differs: ", file);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
