#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little,
              "tensor bytes go to files as they lie in memory");

namespace {

template <typename Convert>
void read_sixteen(const SafetensorsFile& file, const StoredTensor& tensor, std::int64_t first,
                  std::span<float> out, const Convert& convert) {
  constexpr std::size_t kAtATime = 1 << 16;
  std::vector<std::uint16_t> bits(std::min(out.size(), kAtATime));
  for (std::size_t done = 0; done < out.size();) {
    const auto part = std::span(bits).first(std::min(bits.size(), out.size() - done));
    file.read(tensor, 2 * (first + static_cast<std::int64_t>(done)), std::as_writable_bytes(part));
    std::ranges::transform(part, out.begin() + static_cast<std::ptrdiff_t>(done), convert);
    done += part.size();
  }
}

void read_wide(const SafetensorsFile& file, const StoredTensor& tensor, std::int64_t first,
               std::span<float> out) {
  constexpr std::size_t kAtATime = 1 << 15;
  std::vector<double> values(std::min(out.size(), kAtATime));
  for (std::size_t done = 0; done < out.size();) {
    const auto part = std::span(values).first(std::min(values.size(), out.size() - done));
    file.read(tensor, 8 * (first + static_cast<std::int64_t>(done)), std::as_writable_bytes(part));
    std::ranges::transform(part, out.begin() + static_cast<std::ptrdiff_t>(done),
                           [](double value) { return static_cast<float>(value); });
    done += part.size();
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path, OtherDTypes others)
    : file_(path, Fault::Checkpoint) {
  std::uint64_t header_bytes = 0;
  constexpr std::int64_t kPrefix = sizeof header_bytes;
  const auto bad = [&](const auto&... parts) {
    fail(Fault::Checkpoint, "safetensors file '", path, "': ", parts...);
  };
  if (file_.size() < kPrefix) {
    bad("it has ", file_.size(), " bytes, too few for the ", kPrefix,
        " that give the header's length; ", "it was cut short or is of another format");
  }
  file_.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > static_cast<std::uint64_t>(kMaxSafetensorsHeader)) {
    bad("its header would be ", header_bytes, " bytes long but at most ", kMaxSafetensorsHeader,
        " are allowed; the file is damaged or of another format");
  }
  data_begin_ = kPrefix + static_cast<std::int64_t>(header_bytes);
  if (data_begin_ > file_.size()) {
    bad("its header of ", header_bytes, " bytes is longer than the file of ", file_.size(),
        " bytes; it was cut short: copy or make it again");
  }
  std::string json(header_bytes, '\0');
  file_.read(kPrefix, std::as_writable_bytes(std::span(json)));
  header_ = parse_safetensors_header(json, file_.size() - data_begin_, path, others);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  for (const StoredTensor& tensor : tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors()) names.push_back(tensor.name);
  const std::vector<std::string> close = nearest(name, names);
  fail(Fault::Checkpoint, "safetensors file '", path(), "' has no tensor '", name, "' among its ",
       names.size(),
       close.empty() ? "; it may belong to another model" : text("; near names: ", join(close)));
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t first,
                           std::span<std::byte> out) const {
  const auto size = static_cast<std::int64_t>(out.size());
  check(first >= 0 && size <= tensor.bytes() && first <= tensor.bytes() - size, "bytes ", first,
        " to ", first + size, " of tensor ", tensor.name, " with ", tensor.bytes());
  file_.read(data_begin_ + tensor.begin + first, out);
}

void SafetensorsFile::read_floats(const StoredTensor& tensor, std::int64_t first,
                                  std::span<float> out) const {
  if (!tensor.other_dtype.empty())
    fail(Fault::Checkpoint, path(), ": tensor '", printable(tensor.name), "' is of ",
         tensor.other_dtype, "; weights can be F32, F64, BF16 or F16");
  switch (tensor.type.dtype) {
    case DType::F64: return read_wide(*this, tensor, first, out);
    case DType::F32: return read(tensor, 4 * first, std::as_writable_bytes(out));
    case DType::BF16: return read_sixteen(*this, tensor, first, out, from_bf16);
    case DType::F16: return read_sixteen(*this, tensor, first, out, from_f16);
    default:
      fail(Fault::Checkpoint, path(), ": tensor '", printable(tensor.name), "' is of ",
           tensor.type.dtype, "; it must be of f32, bf16 or f16");
  }
}

HostTensor SafetensorsFile::load(std::string_view name) const {
  const StoredTensor& tensor = at(name);
  HostTensor out(tensor.type);
  read(tensor, 0, out.bytes());
  return out;
}

}  // namespace tessera
