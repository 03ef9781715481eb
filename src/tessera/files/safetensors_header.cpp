#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/safetensors.h"

namespace tessera {

namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

constexpr std::size_t kMaxListed = 64;  // far above any number of dims; a hostile list stays small

/// A tensor's entry as written, before its numbers are believed.
struct RawTensor {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape, offsets;
};

/// Takes the events of the JSON parser. A parser into generic objects would silently keep one of
/// two equal keys; this one sees both. What may come where is two levels of objects with strings or
/// lists of whole numbers in the second.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(const std::string& path) : path_(path) {}

  std::vector<RawTensor> tensors;
  SafetensorsMetadata metadata;

  bool start_object(std::size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool string(std::string& value) override;
  bool number_unsigned(std::uint64_t value) override;
  bool number_integer(std::int64_t value) override { bad("a negative number, ", value); }
  bool number_float(double, const std::string& digits) override {
    bad("'", digits, "', not a whole number of 64 bits");
  }
  bool null() override { bad("null"); }
  bool boolean(bool value) override { bad(value); }
  bool binary(nlohmann::json::binary_t&) override { bad("binary"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(Fault::Checkpoint, "safetensors file '", path_, "': the header is not JSON at its byte ",
         position, "; the file is damaged or of another format");
  }

 private:
  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const;
  bool in_metadata() const { return depth_ == 2 && section_ == "__metadata__"; }
  RawTensor& tensor() { return tensors.back(); }

  const std::string& path_;
  int depth_ = 0;        // open objects
  std::string section_;  // key in the outer object: a tensor's name or __metadata__
  std::string field_;    // key in the inner object
  std::set<std::string> sections_, fields_;
  std::vector<std::uint64_t>* list_ = nullptr;  // the open list
};

StoredTensor believe(const RawTensor& raw, const std::string& path, OtherDTypes others);
std::optional<DType> dtype_named(const std::string& name);
/// Of another dtype of the format; 0: it has none of that name.
int bits_of_other(const std::string& name);
void require_tiling(const std::vector<StoredTensor>& tensors, std::int64_t data_bytes,
                    const std::string& path);

template <typename... Parts>
[[noreturn]] void fail_tensor(const std::string& path, const std::string& name,
                              const Parts&... parts) {
  fail(Fault::Checkpoint, "safetensors file '", path, "', tensor '", name, "': ", parts...);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path, OtherDTypes others) {
  const auto damaged = [&](const auto&... parts) {
    fail(Fault::Checkpoint, "safetensors file '", path, "': the header ", parts...,
         "; the file is damaged or of another format");
  };
  if (const std::size_t at = find_invalid_utf8(json); at != json.npos)
    damaged("is not UTF-8 at its byte ", at);
  // The JSON parser takes a zero byte for the end of its input, and would not look at what follows.
  if (const std::size_t at = json.find('\0'); at != json.npos)
    damaged("is not JSON: byte ", at, " is zero");
  if (!starts_with(trim(json), "{")) damaged("is not JSON: it does not begin with {");

  HeaderEvents events(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  SafetensorsHeader out{{}, std::move(events.metadata)};
  for (const RawTensor& raw : events.tensors) out.tensors.push_back(believe(raw, path, others));
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  require_tiling(out.tensors, data_bytes, path);
  return out;
}

namespace {

template <typename... Parts>
void HeaderEvents::bad(const Parts&... parts) const {
  const std::string where = depth_ == 0   ? "at the top"
                            : depth_ == 1 ? text("as the entry '", section_, "'")
                                          : text("in the entry '", section_, "' as ",
                                                 field_.empty() ? "a value" : field_);
  fail(Fault::Checkpoint, "safetensors file '", path_, "': the header has ", parts..., " ", where,
       ", which the format does not allow; the file is damaged or of another format");
}

bool HeaderEvents::start_object(std::size_t) {
  if (depth_ == 2 || list_ != nullptr) bad("an object nested too deep");
  ++depth_;
  if (depth_ == 2) {
    fields_.clear();
    field_.clear();
    if (!in_metadata()) tensors.push_back({section_, {}, {}, {}});
  }
  return true;
}

bool HeaderEvents::key(std::string& name) {
  if (depth_ == 1) {
    section_ = name;
    if (!sections_.insert(name).second)
      fail_tensor(path_, name, "the header names it twice; the file is damaged");
    return true;
  }
  field_ = name;
  if (!fields_.insert(name).second) bad("a second value");
  if (!in_metadata() && name != "dtype" && name != "shape" && name != "data_offsets")
    bad("an unknown field");
  return true;
}

bool HeaderEvents::end_object() {
  --depth_;
  return true;
}

bool HeaderEvents::start_array(std::size_t) {
  if (depth_ != 2 || in_metadata() || list_ != nullptr || field_ == "dtype") bad("a list");
  std::optional<std::vector<std::uint64_t>>& list =
      field_ == "shape" ? tensor().shape : tensor().offsets;
  list_ = &list.emplace();
  return true;
}

bool HeaderEvents::end_array() {
  list_ = nullptr;
  return true;
}

bool HeaderEvents::string(std::string& value) {
  if (in_metadata()) {
    metadata[field_] = value;
  } else if (depth_ == 2 && field_ == "dtype") {
    tensor().dtype = value;
  } else {
    bad("a string");
  }
  return true;
}

bool HeaderEvents::number_unsigned(std::uint64_t value) {
  if (list_ == nullptr) bad("a number");
  if (list_->size() == kMaxListed) bad("a list of more than ", kMaxListed, " numbers");
  list_->push_back(value);
  return true;
}

StoredTensor believe(const RawTensor& raw, const std::string& path, OtherDTypes others) {
  const char* missing = !raw.dtype     ? "dtype"
                        : !raw.shape   ? "shape"
                        : !raw.offsets ? "data_offsets"
                                       : nullptr;
  if (missing != nullptr)
    fail_tensor(path, raw.name, "its ", missing, " is missing; the file is damaged");
  if (raw.offsets->size() != 2 || (*raw.offsets)[0] > (*raw.offsets)[1] ||
      (*raw.offsets)[1] > kMaxBytes) {
    fail_tensor(path, raw.name, "data_offsets [", join(*raw.offsets),
                "] are not a begin and an end; the file is damaged");
  }
  if (raw.shape->size() > static_cast<std::size_t>(Shape::kMaxDims)) {
    fail_tensor(path, raw.name, "it has ", raw.shape->size(), " dims but at most ", Shape::kMaxDims,
                " are supported");
  }
  const std::optional<DType> dtype = dtype_named(*raw.dtype);
  const int other = dtype || others == OtherDTypes::Refuse ? 0 : bits_of_other(*raw.dtype);
  if (!dtype && other == 0)
    fail_tensor(path, raw.name, "dtype ", *raw.dtype,
                " is not supported; supported are F32, F64, BF16, F16, I32, I64, BOOL: convert the "
                "tensor to one of them");
  StoredTensor out{raw.name, {dtype.value_or(DType::Bool), {}, {}}, 0, 0, dtype ? "" : *raw.dtype};
  // Of dtypes of less than a byte, elements in place of bytes, until all are counted.
  auto bytes = static_cast<std::uint64_t>(dtype ? size_of(*dtype) : other < 8 ? 1 : other / 8);
  for (const std::uint64_t dim : *raw.shape) {
    if (dim > kMaxBytes || (dim != 0 && bytes > kMaxBytes / dim)) {
      fail_tensor(path, raw.name, "the size of shape [", join(*raw.shape),
                  "] overflows 64 bits; the file is damaged");
    }
    bytes *= dim;
    out.type.shape.push_back(static_cast<std::int64_t>(dim));
  }
  if (other > 0 && other < 8)
    bytes = (bytes / 8) * static_cast<std::uint64_t>(other) +
            (bytes % 8 * static_cast<std::uint64_t>(other) + 7) / 8;
  out.begin = static_cast<std::int64_t>((*raw.offsets)[0]);
  out.end = static_cast<std::int64_t>((*raw.offsets)[1]);
  if (out.bytes() != static_cast<std::int64_t>(bytes)) {
    fail_tensor(path, raw.name, out.type, " takes ", bytes, " bytes but data_offsets [",
                join(*raw.offsets), "] hold ", out.bytes(), "; the file is damaged");
  }
  return out;
}

std::optional<DType> dtype_named(const std::string& name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"F32", DType::F32}, {"F64", DType::F64}, {"BF16", DType::BF16}, {"F16", DType::F16},
      {"I32", DType::I32}, {"I64", DType::I64}, {"BOOL", DType::Bool}};
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

int bits_of_other(const std::string& name) {
  constexpr std::pair<std::string_view, int> kBits[] = {
      {"U8", 8},          {"I8", 8},          {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"I16", 16},    {"U32", 32},
      {"U64", 64},        {"C64", 64},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [known, bits] : kBits) {
    if (known == name) return bits;
  }
  return 0;
}

void require_tiling(const std::vector<StoredTensor>& tensors, std::int64_t data_bytes,
                    const std::string& path) {
  std::int64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at) {
      fail_tensor(path, tensor.name, "it begins at data byte ", tensor.begin,
                  " but the tensor before it ends at ", at,
                  "; tensors must not overlap or leave gaps: the file is damaged");
    }
    at = tensor.end;
    if (at > data_bytes) {
      fail_tensor(path, tensor.name, "it ends at data byte ", at, " but the file holds only ",
                  data_bytes, " data bytes; the file was cut short: copy or make it again");
    }
  }
  if (at != data_bytes) {
    fail(Fault::Checkpoint, "safetensors file '", path, "': its tensors end at data byte ", at,
         " but the file holds ", data_bytes,
         " data bytes; the rest belongs to no tensor: the file is damaged");
  }
}

}  // namespace

}  // namespace tessera
