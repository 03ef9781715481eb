#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/safetensors.h"

namespace tessera {

namespace {

constexpr std::int64_t kPieceBytes = 8 << 20;
constexpr std::size_t kAlignment = 8;

std::string_view stored_name(DType dtype) {
  switch (dtype) {
    case DType::F32: return "F32";
    case DType::F64: return "F64";
    case DType::BF16: return "BF16";
    case DType::F16: return "F16";
    case DType::I32: return "I32";
    case DType::I64: return "I64";
    case DType::Bool: return "BOOL";
  }
  return "";
}

void sort_for_file(std::vector<TensorSource>& tensors);
std::string header_text(const std::vector<TensorSource>& sorted,
                        const SafetensorsMetadata& metadata);

}  // namespace

TensorSource TensorSource::of(std::string name, TensorType type, std::span<const std::byte> bytes) {
  check(static_cast<std::int64_t>(bytes.size()) == type.bytes(), bytes.size(), " bytes for a ",
        type);
  return {std::move(name), std::move(type), [bytes](std::int64_t first, std::span<std::byte> out) {
            std::memcpy(out.data(), bytes.data() + first, out.size());
          }};
}

void write_safetensors(const ByteSink& sink, std::vector<TensorSource> tensors,
                       const SafetensorsMetadata& metadata) {
  sort_for_file(tensors);
  const std::string header = header_text(tensors, metadata);
  const std::uint64_t header_bytes = header.size();
  sink(std::as_bytes(std::span(&header_bytes, 1)));
  sink(std::as_bytes(std::span(header)));

  std::vector<std::byte> piece;
  std::int64_t most = 0;
  for (const TensorSource& tensor : tensors) most = std::max(most, tensor.type.bytes());
  piece.reserve(static_cast<std::size_t>(std::min(kPieceBytes, most)));  // a growing one is two
  for (const TensorSource& tensor : tensors) {
    const std::int64_t bytes = tensor.type.bytes();
    for (std::int64_t first = 0; first < bytes; first += kPieceBytes) {
      piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, bytes - first)));
      tensor.fill(first, piece);
      sink(piece);
    }
  }
}

void write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                       const SafetensorsMetadata& metadata) {
  AtomicFile file(path);
  write_safetensors([&](std::span<const std::byte> bytes) { file.write(bytes); },
                    std::move(tensors), metadata);
  file.commit();
}

namespace {

void sort_for_file(std::vector<TensorSource>& tensors) {
  const auto order = [](const TensorSource& t) {
    return std::make_tuple(-size_of(t.type.dtype), t.type.dtype);
  };
  std::sort(tensors.begin(), tensors.end(), [&](const TensorSource& a, const TensorSource& b) {
    return order(a) != order(b) ? order(a) < order(b) : a.name < b.name;
  });
}

/// Written by hand, as a JSON object that keeps its order searches all its keys for each new one.
std::string header_text(const std::vector<TensorSource>& sorted,
                        const SafetensorsMetadata& metadata) {
  const auto quoted = [](const std::string& value) {
    require(find_invalid_utf8(value) == value.npos,
            "safetensors: a tensor's name or the metadata is not UTF-8; ", "rename it");
    return nlohmann::json(value).dump();
  };
  std::vector<std::string> entries, pairs;
  for (const auto& [key, value] : metadata) pairs.push_back(text(quoted(key), ":", quoted(value)));
  if (!pairs.empty()) entries.push_back(text("\"__metadata__\":{", join(pairs, ","), "}"));
  std::set<std::string_view> names;
  std::int64_t at = 0;
  for (const TensorSource& tensor : sorted) {
    require(tensor.name != "__metadata__",
            "safetensors: '__metadata__' cannot be a tensor's name; rename it");
    require(names.insert(tensor.name).second, "safetensors: two tensors are named '", tensor.name,
            "'; rename one");
    check(tensor.type.layout.plain(), "tensor ", tensor.name, " of type ", tensor.type,
          " has an opaque layout");
    const std::int64_t end = at + tensor.type.bytes();
    entries.push_back(text(quoted(tensor.name), ":{\"dtype\":\"", stored_name(tensor.type.dtype),
                           "\",\"shape\":", tensor.type.shape, ",\"data_offsets\":[", at, ",", end,
                           "]}"));
    at = end;
  }
  std::string json = text("{", join(entries, ","), "}");
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  require(static_cast<std::int64_t>(json.size()) <= kMaxSafetensorsHeader,
          "safetensors: the header takes ", json.size(), " bytes but at most ",
          kMaxSafetensorsHeader, " are allowed; write several files");
  return json;
}

}  // namespace

}  // namespace tessera
