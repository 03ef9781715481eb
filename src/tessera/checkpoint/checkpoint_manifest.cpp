#include "tessera/checkpoint/checkpoint_manifest.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/checkpoint/json/manifest_fields.h"
#include "tessera/files/safetensors.h"

namespace tessera {

namespace {

using nlohmann::json;
using Fields = ManifestFields;

constexpr const char* kFormat = "tessera checkpoint";
// Bytes of a tensor: far from where 64 bits end, so that offsets and sizes of shards never wrap.
constexpr std::int64_t kMaxTensor = std::int64_t{1} << 60;
constexpr int kMaxDepth = 8;  // what we write has 5
constexpr std::string_view kHashKey = ",\n \"hash\": \"", kHashEnd = "\"\n}\n";

void require_seal(std::string_view text, const std::string& path);
json parse_json(std::string_view text, const std::string& path);
ManifestFile parse_file(const Fields& in);
ManifestTensor parse_tensor(const Fields& in, const Manifest& manifest, std::int64_t version,
                            const std::string& path);
TensorGrid parse_cuts(const Fields& in, const Shape& shape, std::int64_t most_cells);
TensorGrid grid_of_runs(const Fields& in, const TensorType& type, const std::string& path);
TensorType parse_tensor_type(const Fields& in);
void require_tiled_files(const Manifest& manifest, const std::string& path);

}  // namespace

std::string to_text(const Manifest& manifest) {
  const auto utf8 = [](const std::string& value, const char* what) -> const std::string& {
    require(find_invalid_utf8(value) == value.npos, "checkpoint: ", what, " is not UTF-8");
    return value;
  };
  nlohmann::ordered_json out = {{"format", kFormat},
                                {"version", kManifestVersion},
                                {"step", manifest.record.step},
                                {"samples", manifest.record.samples},
                                {"texts", json::object()},
                                {"block_bytes", manifest.block_bytes},
                                {"files", json::array()},
                                {"tensors", json::array()}};
  for (const auto& [key, value] : manifest.record.texts)
    out["texts"][utf8(key, "the name of a text")] = utf8(value, "a text");
  for (const ManifestFile& f : manifest.files) {
    out["files"].push_back({{"name", f.name},
                            {"bytes", f.bytes},
                            {"hash", f.hash},
                            {"header_bytes", f.header_bytes},
                            {"header_hash", f.header_hash}});
  }
  for (const ManifestTensor& t : manifest.tensors) {
    const Shape& shape = t.entry.type.shape;
    require(t.entry.name.size() <= kMaxTensorName, "checkpoint: a tensor's name has ",
            t.entry.name.size(), " bytes but at most ", kMaxTensorName, " are allowed; shorten it");
    nlohmann::ordered_json tensor = {{"name", utf8(t.entry.name, "a tensor's name")},
                                     {"dtype", to_text(t.entry.type.dtype)},
                                     {"shape", std::vector(shape.begin(), shape.end())},
                                     {"role", role_text(t.entry.role)}};
    if (t.grid != TensorGrid::whole(shape)) tensor["cuts"] = t.grid.cuts;
    tensor["slices"] = json::array();
    for (const ManifestSlice& s : t.slices)
      tensor["slices"].push_back({{"file", s.file}, {"at", s.at}, {"blocks", s.blocks}});
    out["tensors"].push_back(std::move(tensor));
  }
  std::string text = seal_manifest(out.dump(1));
  require(static_cast<std::int64_t>(text.size()) <= kMaxManifest, "checkpoint: its manifest takes ",
          text.size(), " bytes but at most ", kMaxManifest, " are allowed; shorten its texts");
  return text;
}

void require_room_for_tensors(const CheckpointRecord& record) {
  constexpr std::int64_t kMost = kMaxManifest / 10 * 9;
  std::int64_t all = 0;
  std::vector<std::string> sizes;
  for (const auto& [key, value] : record.texts) {
    const std::string written = json(value).dump(-1, ' ', false, json::error_handler_t::replace);
    all += std::ssize(written);
    sizes.push_back(tessera::text(key, " ", written.size()));
  }
  if (all > kMost)
    fail(Fault::Data, "the texts to record in each checkpoint take ", all, " bytes (", join(sizes),
         ") but at most ", kMost, " are allowed; give a smaller tokenizer or config.json");
}

std::string seal_manifest(std::string_view object) {
  object = trim(object);
  check(object.size() > 2 && object.back() == '}', "no JSON object to seal");
  object = trim(object.substr(0, object.size() - 1));
  const std::string begin = text(object, kHashKey);
  return text(begin, hash128_text(std::as_bytes(std::span(begin))), kHashEnd);
}

std::int64_t count_blocks(const Manifest& manifest, std::int64_t bytes) {
  return bytes / manifest.block_bytes + (bytes % manifest.block_bytes != 0 ? 1 : 0);
}

std::int64_t size_of_block(const Manifest& manifest, const ManifestSlice& slice,
                           std::int64_t index) {
  return std::min(slice.bytes - index * manifest.block_bytes, manifest.block_bytes);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  require_seal(text, path);
  const json object = parse_json(text, path);
  const Fields in(
      object, [] { return "the manifest"; }, path);
  if (in.string("format") != kFormat) in.bad("it is of another format");
  const std::int64_t version = in.integer("version", 1);
  if (version > kManifestVersion) {
    fail(Fault::Checkpoint, "checkpoint file '", path, "': its format has version ", version,
         " but this tessera reads up to ", kManifestVersion, "; use a newer tessera");
  }
  Manifest out;
  out.record.step = in.integer("step", 0);
  out.record.samples = in.integer("samples", 0);
  for (const auto& [key, value] : in.object("texts").items()) {
    if (!value.is_string()) in.bad("the text '", key, "' is not a string");
    out.record.texts[key] = value.get<std::string>();
  }
  out.block_bytes = in.integer("block_bytes", 1, kBlockBytes);

  std::set<std::string> names;
  for (const json& file : in.array("files")) {
    const std::size_t index = out.files.size();
    out.files.push_back(parse_file(Fields(
        file, [index] { return tessera::text("file ", index); }, path)));
    if (!names.insert(out.files.back().name).second)
      in.bad("two files are named '", out.files.back().name, "'");
  }
  for (const json& tensor : in.array("tensors")) {
    const std::size_t index = out.tensors.size();
    const Fields fields(
        tensor, [index] { return tessera::text("tensor ", index); }, path);
    ManifestTensor parsed = parse_tensor(fields, out, version, path);
    if (!out.tensors.empty() && out.tensors.back().entry.name >= parsed.entry.name)
      fields.bad("'", parsed.entry.name, "' is twice or out of order");
    out.tensors.push_back(std::move(parsed));
  }
  require_tiled_files(out, path);
  return out;
}

namespace {

void require_seal(std::string_view text, const std::string& path) {
  const std::size_t tail = kManifestHashDigits + kHashEnd.size();
  const std::size_t size = text.size() < tail ? 0 : text.size() - tail;
  const std::string_view begin = text.substr(0, size);
  if (size == 0 || !begin.ends_with(kHashKey) || !text.ends_with(kHashEnd))
    damaged_manifest(path, "its ", text.size(),
                     " bytes do not end in its hash, so it is damaged or cut");
  const std::string hash = hash128_text(std::as_bytes(std::span(begin)));
  const std::string_view saved = text.substr(size, kManifestHashDigits);
  if (hash != saved)
    damaged_manifest(path, "damaged: its bytes have the hash ", hash, " but ", saved, " was saved");
}

json parse_json(std::string_view text, const std::string& path) {
  // The parser would take a zero byte for the end, and keep one of two equal keys.
  if (text.find('\0') != text.npos || text.front() != '{') damaged_manifest(path, "it is not JSON");
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) damaged_manifest(path, "its JSON is nested deeper than ", kMaxDepth);
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      keys.resize(std::max(keys.size(), level + 2));
      keys[level + 1].clear();
    }
    if (event == json::parse_event_t::key && !keys[level].insert(parsed.get<std::string>()).second)
      damaged_manifest(path, "its JSON has the key '", parsed.get<std::string>(), "' twice");
    return true;
  };
  json object = json::parse(text, guard, /*allow_exceptions=*/false);
  if (!object.is_object()) damaged_manifest(path, "it is not JSON");
  return object;
}

ManifestFile parse_file(const Fields& in) {
  ManifestFile out{in.string("name"), in.integer("bytes", 0), 0, in.hash("hash"),
                   in.hash("header_hash")};
  constexpr std::int64_t kPrefix = 8;
  out.header_bytes =
      in.integer("header_bytes", kPrefix, std::min(out.bytes, kMaxSafetensorsHeader + kPrefix));
  const bool plain = std::all_of(out.name.begin(), out.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  constexpr std::size_t kLongest = 255;  // that file systems take
  // Not a hidden file, not a path that leaves the folder.
  if (out.name.empty() || out.name.size() > kLongest || !plain || out.name.front() == '.' ||
      out.name == kManifestName)
    in.bad("'", out.name, "' is not a name of a data file");
  return out;
}

ManifestTensor parse_tensor(const Fields& in, const Manifest& manifest, std::int64_t version,
                            const std::string& path) {
  ManifestTensor out;
  out.entry.name = in.string("name");
  if (out.entry.name.size() > kMaxTensorName)
    in.bad("its name has ", out.entry.name.size(), " bytes but at most ", kMaxTensorName,
           " are allowed");
  out.entry.type = parse_tensor_type(in);
  const std::string role = in.string("role");
  const auto known = std::find(graph_words::kRoles.begin(), graph_words::kRoles.end(), role);
  out.entry.role = static_cast<Role>(known - graph_words::kRoles.begin());
  if (known == graph_words::kRoles.end() || !is_saved(out.entry.role))
    in.bad("'", role, "' is not a role of a saved tensor");

  const Shape& shape = out.entry.type.shape;
  const json& slices = in.array("slices");
  const auto count = static_cast<std::int64_t>(slices.size());
  out.grid = version == 1 ? grid_of_runs(in, out.entry.type, path) : parse_cuts(in, shape, count);
  // A tensor without elements has none; version 1 had one without bytes.
  const std::int64_t cells = out.grid.cells();
  if (cells == 0 && version == 1) return out;
  if (count != cells) in.bad("it has ", count, " slices where ", cells, " belong");
  for (const json& slice : slices) {
    const auto index = static_cast<std::int64_t>(out.slices.size());
    const auto which = [&] { return text("tensor '", out.entry.name, "' slice ", index); };
    const Fields s(slice, which, path);
    ManifestSlice part;
    const auto files = static_cast<std::int64_t>(manifest.files.size());
    part.file = static_cast<std::size_t>(s.integer("file", 0, files - 1));
    part.bytes = out.grid.cell(index).extent.numel() * size_of(out.entry.type.dtype);
    const std::int64_t room = manifest.files[part.file].bytes - part.bytes;
    if (room < 0) s.bad("its ", part.bytes, " bytes are more than its file has");
    part.at = s.integer("at", 0, room);
    const json& blocks = s.array("blocks");
    const std::int64_t wanted = count_blocks(manifest, part.bytes);
    if (static_cast<std::int64_t>(blocks.size()) != wanted)
      s.bad("it has ", blocks.size(), " hashes of blocks where ", wanted, " belong");
    for (const json& block : blocks) part.blocks.push_back(s.hash_of(block));
    out.slices.push_back(std::move(part));
  }
  return out;
}

/// One list for each dim, or one for all elements in a row.
TensorGrid parse_cuts(const Fields& in, const Shape& shape, std::int64_t most_cells) {
  TensorGrid out = TensorGrid::whole(shape);
  if (!in.has("cuts")) return out;
  const json& dims = in.array("cuts");
  if (static_cast<int>(dims.size()) != shape.ndim()) {
    if (dims.size() != 1)
      in.bad("it has cuts of ", dims.size(), " dims where it has ", shape.ndim());
    out = TensorGrid::whole({shape.numel()});
  }
  std::int64_t cells = 1;
  for (int d = 0; d < out.shape.ndim(); ++d) {
    const json& list = dims[static_cast<std::size_t>(d)];
    if (!list.is_array()) in.bad("the cuts of a dim are not a list");
    std::int64_t above = 0;
    for (const json& cut : list) {
      if (!cut.is_number_unsigned() ||
          cut.get<std::uint64_t>() >= static_cast<std::uint64_t>(out.shape[d]) ||
          cut.get<std::int64_t>() <= above)
        in.bad("the cuts of dim ", d, " are not ascending from 1 to ", out.shape[d] - 1);
      above = cut.get<std::int64_t>();
      out.cuts[static_cast<std::size_t>(d)].push_back(above);
    }
    // Fewer than there are slices, so that their number does not wrap.
    const std::int64_t parts = static_cast<std::int64_t>(list.size()) + 1;
    if (parts > 1 && cells > most_cells / parts) in.bad("its cuts give more cells than slices");
    cells *= parts;
  }
  return out;
}

/// Of version 1: slices are runs of the tensor's bytes, one behind the other.
TensorGrid grid_of_runs(const Fields& in, const TensorType& type, const std::string& path) {
  const std::int64_t width = size_of(type.dtype), numel = type.numel();
  TensorGrid out = TensorGrid::whole({numel});
  std::int64_t at = 0;
  for (const json& slice : in.array("slices")) {
    const auto which = [&] { return text("a slice of tensor '", in.string("name"), "'"); };
    const Fields s(slice, which, path);
    s.integer("first", at, at);
    if (at > 0) out.cuts[0].push_back(at / width);
    // Only a tensor without elements has a slice without bytes: a reader goes from slice to slice.
    const std::int64_t bytes = s.integer("bytes", numel == 0 ? 0 : 1, type.bytes() - at);
    if (bytes % width != 0)
      s.bad("its ", bytes, " bytes are not a whole number of ", to_text(type.dtype));
    at += bytes;
  }
  if (at != type.bytes())
    in.bad("its slices hold ", at, " bytes but a ", type, " has ", type.bytes());
  return out.cuts[0].empty() ? TensorGrid::whole(type.shape) : out;
}

TensorType parse_tensor_type(const Fields& in) {
  TensorType type;
  const std::string dtype = in.string("dtype");
  try {
    type.dtype = parse_dtype(dtype);
  } catch (const Error&) {
    in.bad("'", dtype, "' is not a dtype that this tessera knows");
  }
  const json& dims = in.array("shape");
  if (dims.size() > static_cast<std::size_t>(Shape::kMaxDims)) in.bad("too many dims");
  std::int64_t bytes = size_of(type.dtype);  // of the dims that are not 0: strides know no others
  for (const json& dim : dims) {
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > kMaxCount) in.bad("no shape");
    const auto size = dim.get<std::int64_t>();
    if (size != 0 && bytes > kMaxTensor / size)
      in.bad("its shape has more than ", kMaxTensor, " bytes");
    bytes *= std::max<std::int64_t>(size, 1);
    type.shape.push_back(size);
  }
  return type;
}

/// Each byte of a file belongs to its header or to one slice, so the hashes of headers and blocks
/// cover it.
void require_tiled_files(const Manifest& manifest, const std::string& path) {
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> parts(manifest.files.size());
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) {
      parts[slice.file].emplace_back(slice.at, slice.at + slice.bytes);
    }
  }
  const auto what = [&](std::size_t file) {
    return text("the slices of '", manifest.files[file].name, "' overlap or leave a gap at byte ");
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::sort(parts[i].begin(), parts[i].end());
    std::int64_t at = manifest.files[i].header_bytes;
    for (const auto& [begin, end] : parts[i]) {
      if (begin != at) damaged_manifest(path, what(i), at);
      at = end;
    }
    if (at != manifest.files[i].bytes) damaged_manifest(path, what(i), at);
  }
}

}  // namespace

}  // namespace tessera
