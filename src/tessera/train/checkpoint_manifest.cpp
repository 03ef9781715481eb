#include "tessera/train/checkpoint_manifest.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/safetensors.h"
#include "tessera/data/utf8.h"

namespace tessera {

namespace {

using nlohmann::json;

constexpr const char* kFormat = "tessera checkpoint";
constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
// Bytes of a tensor: far from where 64 bits end, so that offsets and sizes of shards never wrap.
constexpr std::int64_t kMaxTensor = std::int64_t{1} << 60;
constexpr int kMaxDepth = 8;  // what we write has 5
constexpr std::string_view kHashKey = ",\n \"hash\": \"", kHashEnd = "\"\n}\n";
constexpr std::size_t kHashDigits = 32;

constexpr std::pair<Role, const char*> kRoles[] = {
    {Role::Parameter, "parameter"}, {Role::Moment, "moment"}, {Role::Counter, "counter"}};

template <typename... Parts>
[[noreturn]] void damaged(const std::string& path, const Parts&... parts) {
  fail(Fault::Checkpoint, "checkpoint file '", path, "': ", parts...,
       "; restore it from a copy or use another checkpoint");
}

/// A JSON object whose fields are checked as they are read.
class Fields {
 public:
  Fields(const json& object, std::string what, const std::string& path);
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most = kMaxBytes) const;
  std::string string(const char* key) const;
  std::string hash(const char* key) const { return hash_of(at(key)); }
  const json& array(const char* key) const;
  const json& object(const char* key) const;
  const json& at(const char* key) const;
  std::string hash_of(const json& value) const;
  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    damaged(path_, what_, ": ", parts...);
  }

 private:
  const json& object_;
  std::string what_;
  const std::string& path_;
};

void require_seal(std::string_view text, const std::string& path);
json parse_json(std::string_view text, const std::string& path);
ManifestFile parse_file(const Fields& in);
ManifestTensor parse_tensor(const Fields& in, const Manifest& manifest, const std::string& path);
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
                                {"block_bytes", kBlockBytes},
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
    const auto role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                   [&](const auto& r) { return r.first == t.entry.role; });
    const Shape& shape = t.entry.type.shape;
    nlohmann::ordered_json tensor = {{"name", utf8(t.entry.name, "a tensor's name")},
                                     {"dtype", to_text(t.entry.type.dtype)},
                                     {"shape", std::vector(shape.begin(), shape.end())},
                                     {"role", role->second},
                                     {"slices", json::array()}};
    for (const ManifestSlice& s : t.slices) {
      tensor["slices"].push_back({{"file", s.file},
                                  {"first", s.first},
                                  {"bytes", s.bytes},
                                  {"at", s.at},
                                  {"blocks", s.blocks}});
    }
    out["tensors"].push_back(std::move(tensor));
  }
  std::string text = seal_manifest(out.dump(1));
  require(static_cast<std::int64_t>(text.size()) <= kMaxManifest, "checkpoint: its manifest takes ",
          text.size(), " bytes but at most ", kMaxManifest, " are allowed; shorten its texts");
  return text;
}

std::string seal_manifest(std::string_view object) {
  object = trim(object);
  check(object.size() > 2 && object.back() == '}', "no JSON object to seal");
  object = trim(object.substr(0, object.size() - 1));
  const std::string begin = text(object, kHashKey);
  return text(begin, hash128_text(std::as_bytes(std::span(begin))), kHashEnd);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  require_seal(text, path);
  const json object = parse_json(text, path);
  const Fields in(object, "the manifest", path);
  if (in.string("format") != kFormat) in.bad("it is of another format");
  if (const std::int64_t version = in.integer("version", 1); version > kManifestVersion) {
    fail(Fault::Checkpoint, "checkpoint file '", path, "': its format has version ", version,
         " but this tessera reads up to ", kManifestVersion, "; use a newer tessera");
  }
  Manifest out;
  out.record.step = in.integer("step", 0);
  out.record.samples = in.integer("samples", 0);
  for (const auto& [key, value] : in.object("texts").items()) {
    if (!value.is_string()) in.bad("the text '", key, "' is no string");
    out.record.texts[key] = value.get<std::string>();
  }
  in.integer("block_bytes", kBlockBytes, kBlockBytes);

  std::set<std::string> names;
  for (const json& file : in.array("files")) {
    out.files.push_back(parse_file(Fields(file, tessera::text("file ", out.files.size()), path)));
    if (!names.insert(out.files.back().name).second)
      in.bad("two files are named '", out.files.back().name, "'");
  }
  for (const json& tensor : in.array("tensors")) {
    const Fields fields(tensor, tessera::text("tensor ", out.tensors.size()), path);
    ManifestTensor parsed = parse_tensor(fields, out, path);
    if (!out.tensors.empty() && out.tensors.back().entry.name >= parsed.entry.name)
      fields.bad("'", parsed.entry.name, "' is twice or out of order");
    out.tensors.push_back(std::move(parsed));
  }
  require_tiled_files(out, path);
  return out;
}

namespace {

void require_seal(std::string_view text, const std::string& path) {
  const std::size_t tail = kHashDigits + kHashEnd.size();
  const std::size_t size = text.size() < tail ? 0 : text.size() - tail;
  const std::string_view begin = text.substr(0, size);
  if (size == 0 || !begin.ends_with(kHashKey) || !text.ends_with(kHashEnd))
    damaged(path, "its ", text.size(), " bytes do not end in its hash, so it is damaged or cut");
  const std::string hash = hash128_text(std::as_bytes(std::span(begin)));
  const std::string_view saved = text.substr(size, kHashDigits);
  if (hash != saved)
    damaged(path, "damaged: its bytes have the hash ", hash, " but ", saved, " was saved");
}

json parse_json(std::string_view text, const std::string& path) {
  // The parser would take a zero byte for the end, and keep one of two equal keys.
  if (text.find('\0') != text.npos || text.front() != '{') damaged(path, "it is not JSON");
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) damaged(path, "its JSON is nested deeper than ", kMaxDepth);
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      keys.resize(std::max(keys.size(), level + 2));
      keys[level + 1].clear();
    }
    if (event == json::parse_event_t::key && !keys[level].insert(parsed.get<std::string>()).second)
      damaged(path, "its JSON has the key '", parsed.get<std::string>(), "' twice");
    return true;
  };
  json object = json::parse(text, guard, /*allow_exceptions=*/false);
  if (!object.is_object()) damaged(path, "it is not JSON");
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
  // Not a hidden file, not a path that leaves the folder.
  if (out.name.empty() || !plain || out.name.front() == '.' || out.name == kManifestName)
    in.bad("'", out.name, "' is no name of a data file");
  return out;
}

ManifestTensor parse_tensor(const Fields& in, const Manifest& manifest, const std::string& path) {
  ManifestTensor out;
  out.entry.name = in.string("name");
  out.entry.type = parse_tensor_type(in);
  const std::string role = in.string("role");
  const auto known = std::find_if(std::begin(kRoles), std::end(kRoles),
                                  [&](const auto& r) { return role == r.second; });
  if (known == std::end(kRoles)) in.bad("'", role, "' is no role");
  out.entry.role = known->first;

  std::int64_t at = 0;
  for (const json& slice : in.array("slices")) {
    const Fields s(slice, text("tensor '", out.entry.name, "' slice ", out.slices.size()), path);
    ManifestSlice part;
    const auto files = static_cast<std::int64_t>(manifest.files.size());
    part.file = static_cast<std::size_t>(s.integer("file", 0, files - 1));
    part.first = s.integer("first", at, at);
    // Only a tensor without elements has a slice without bytes: a reader goes from slice to slice.
    const std::int64_t rest = out.entry.type.bytes() - at;
    part.bytes = s.integer("bytes", std::min<std::int64_t>(1, out.entry.type.bytes()), rest);
    if (part.bytes % size_of(out.entry.type.dtype) != 0)
      s.bad("its ", part.bytes, " bytes hold no whole number of ", out.entry.type.dtype);
    part.at = s.integer("at", 0, manifest.files[part.file].bytes - part.bytes);
    const json& blocks = s.array("blocks");
    const std::int64_t count = part.bytes / kBlockBytes + (part.bytes % kBlockBytes != 0 ? 1 : 0);
    if (static_cast<std::int64_t>(blocks.size()) != count)
      s.bad("it has ", blocks.size(), " hashes of blocks where ", count, " belong");
    for (const json& block : blocks) part.blocks.push_back(s.hash_of(block));
    at += part.bytes;
    out.slices.push_back(std::move(part));
  }
  if (at != out.entry.type.bytes())
    in.bad("its slices hold ", at, " bytes but a ", out.entry.type, " has ",
           out.entry.type.bytes());
  return out;
}

TensorType parse_tensor_type(const Fields& in) {
  TensorType type;
  const std::string dtype = in.string("dtype");
  try {
    type.dtype = parse_dtype(dtype);
  } catch (const Error&) {
    in.bad("'", dtype, "' is no dtype that this tessera knows");
  }
  const json& dims = in.array("shape");
  if (dims.size() > static_cast<std::size_t>(Shape::kMaxDims)) in.bad("too many dims");
  std::int64_t bytes = size_of(type.dtype);  // of the dims that are not 0: strides know no others
  for (const json& dim : dims) {
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > kMaxBytes) in.bad("no shape");
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
      if (slice.bytes != 0) parts[slice.file].emplace_back(slice.at, slice.at + slice.bytes);
    }
  }
  const auto what = [&](std::size_t file) {
    return text("the slices of '", manifest.files[file].name, "' overlap or leave a gap at byte ");
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::sort(parts[i].begin(), parts[i].end());
    std::int64_t at = manifest.files[i].header_bytes;
    for (const auto& [begin, end] : parts[i]) {
      if (begin != at) damaged(path, what(i), at);
      at = end;
    }
    if (at != manifest.files[i].bytes) damaged(path, what(i), at);
  }
}

Fields::Fields(const json& object, std::string what, const std::string& path)
    : object_(object), what_(std::move(what)), path_(path) {
  if (!object.is_object()) bad("it is no object");
}

const json& Fields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) bad("its '", key, "' is missing");
  return *found;
}

std::int64_t Fields::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const json& value = at(key);
  // A negative number is of another kind; one above 2^63 would wrap.
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxBytes)
    bad("its '", key, "' is no count");
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most)
    bad("its '", key, "' is ", number, ", not from ", least, " to ", most);
  return number;
}

std::string Fields::string(const char* key) const {
  const json& value = at(key);
  if (!value.is_string()) bad("its '", key, "' is no string");
  return value.get<std::string>();
}

const json& Fields::array(const char* key) const {
  const json& value = at(key);
  if (!value.is_array()) bad("its '", key, "' is no list");
  return value;
}

const json& Fields::object(const char* key) const {
  const json& value = at(key);
  if (!value.is_object()) bad("its '", key, "' is no object");
  return value;
}

std::string Fields::hash_of(const json& value) const {
  const auto digits = value.is_string() ? value.get<std::string>() : std::string();
  if (digits.size() != kHashDigits || digits.find_first_not_of("0123456789abcdef") != digits.npos)
    bad("a hash is not of ", kHashDigits, " hexadecimal digits");
  return digits;
}

}  // namespace

}  // namespace tessera
