#include "tessera/c_api/call_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "tessera/base/error.h"

namespace tessera {

namespace {

const CallJson kNoMembers = CallJson::object();

[[noreturn]] void fail_kind(const std::string& what, const CallJson& json,
                            std::string_view wanted) {
  fail(Fault::Usage, what, " is ", shown_json(json), "; give ", wanted);
}

/// Number `index` of "%12.1" or "%12"; -1: it is none.
std::int64_t number_of(std::string_view digits) {
  std::int64_t out = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return failure == std::errc() && end == digits.data() + digits.size() ? out : -1;
}

}  // namespace

std::string shown_json(const CallJson& json) {
  constexpr std::size_t kMost = 80;
  std::string out = json.dump(-1, ' ', true, CallJson::error_handler_t::replace);
  if (out.size() > kMost) out = out.substr(0, kMost) + "...";
  return out;
}

std::string near_names(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = nearest(name, known);
  if (near.empty()) return known.empty() ? "; there are none" : text("; there are ", join(known));
  return text("; nearest ", near.size() == 1 ? "is " : "are ", join(near));
}

CallFields::CallFields(const CallJson& object, std::string what, Builder* builder)
    : object_(object), what_(std::move(what)), builder_(builder) {
  if (!object.is_object()) fail_kind(what_, object, "an object of members by name");
}

const CallJson* CallFields::find(const char* name) {
  if (std::ranges::find(asked_, name) == asked_.end()) asked_.emplace_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

CallFields CallFields::part(const char* name) {
  const CallJson* json = find(name);
  return {json == nullptr ? kNoMembers : *json, member(name), builder_};
}

void CallFields::finish() const {
  for (const auto& [name, value] : object_.items()) {
    require(std::ranges::find(asked_, name) != asked_.end(), what_, " has no '", name, "'",
            near_names(name, asked_));
  }
}

void CallFields::fail_missing(const char* name) const {
  fail(Fault::Usage, what_, ": ", name, " is missing; give it");
}

std::size_t CallFields::index_of(const std::string& what, const std::string& word,
                                 const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, word);
  require(found != words.end(), what, " is '", word, "'; it can be ", join(words));
  return static_cast<std::size_t>(found - words.begin());
}

void CallFields::require_list(const CallJson& json, const std::string& what) {
  if (!json.is_array()) fail_kind(what, json, "a list");
}

void CallFields::read(const CallJson& json, const std::string& what, bool& into) const {
  if (!json.is_boolean()) fail_kind(what, json, "true or false");
  into = json.get<bool>();
}

void CallFields::read(const CallJson& json, const std::string& what, std::int64_t& into) const {
  const bool above = json.is_number_unsigned() &&
                     json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (!json.is_number_integer() || above) fail_kind(what, json, "a whole number below 2^63");
  into = json.get<std::int64_t>();
}

void CallFields::read(const CallJson& json, const std::string& what, int& into) const {
  std::int64_t number = 0;
  read(json, what, number);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max())
    fail_kind(what, json, "a smaller number");
  into = static_cast<int>(number);
}

void CallFields::read(const CallJson& json, const std::string& what, double& into) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) {
    into = json.get<double>();
  } else if (json == "inf" || json == "-inf") {
    into = json == "inf" ? kInfinity : -kInfinity;
  } else if (json == "nan") {
    into = std::numeric_limits<double>::quiet_NaN();
  } else {
    fail_kind(what, json, "a number");
  }
}

void CallFields::read(const CallJson& json, const std::string& what, std::string& into) const {
  if (!json.is_string()) fail_kind(what, json, "a text");
  into = json.get<std::string>();
  require(into.find('\0') == into.npos, what, " is ", shown_json(json),
          ", which has a zero byte; leave it out");
}

void CallFields::read(const CallJson& json, const std::string& what, DType& into) const {
  std::string name;
  read(json, what, name);
  constexpr DType kAll[] = {DType::F32, DType::F64, DType::BF16, DType::F16,
                            DType::I32, DType::I64, DType::Bool};
  const auto found = std::ranges::find(kAll, name, [](DType each) { return to_text(each); });
  require(found != std::end(kAll), what, " is '", name, "'; it can be ", join(kAll));
  into = *found;
}

void CallFields::read(const CallJson& json, const std::string& what, Shape& into) const {
  std::vector<std::int64_t> sizes;
  read(json, what, sizes);
  require(std::ssize(sizes) <= Shape::kMaxDims, what, " has ", sizes.size(), " dims; give at most ",
          Shape::kMaxDims);
  into = Shape(sizes);
}

void CallFields::read(const CallJson& json, const std::string& what, WeightInit& into) const {
  CallFields fields(json, what);
  constexpr std::array<std::string_view, 8> kKinds = {
      "constant",  "normal",     "truncated_normal", "uniform",
      "he_normal", "he_uniform", "xavier_normal",    "xavier_uniform"};
  constexpr std::array<std::string_view, 2> kFans = {"in", "out"};
  enum class Kind {
    Constant,
    Normal,
    Truncated,
    Uniform,
    HeNormal,
    HeUniform,
    Xavier,
    XavierUniform
  };
  Kind kind = Kind::Normal;
  fields.need<std::string>("kind");
  fields.get_word("kind", kKinds, kind);
  const auto value = fields.need<double>("value");
  Fan fan = Fan::In;
  fields.get_word("fan", kFans, fan);
  std::int64_t parts = 1;
  fields.get("parts", parts);
  fields.finish();
  require(parts >= 1, what, ": parts is ", parts, "; give at least 1");
  require(std::abs(value) <= std::numeric_limits<float>::max(), what, ": value is ", value,
          "; give a finite number of f32");
  switch (kind) {
    case Kind::Constant: into = constant_init(value); break;
    case Kind::Normal: into = normal_init(value); break;
    case Kind::Truncated: into = truncated_normal_init(value); break;
    case Kind::Uniform: into = uniform_init(value); break;
    case Kind::HeNormal: into = he_normal_init(fan, value); break;
    case Kind::HeUniform: into = he_uniform_init(fan, value); break;
    case Kind::Xavier: into = xavier_normal_init(value); break;
    case Kind::XavierUniform: into = xavier_uniform_init(value); break;
  }
  if (parts > 1) into = residual_init(into, parts);
}

void CallFields::read(const CallJson& json, const std::string& what, Value& into) const {
  const std::string name = json.is_string() ? json.get<std::string>() : "";
  if (builder_ == nullptr || !name.starts_with('%')) fail_kind(what, json, "a value of the graph");
  const std::size_t dot = name.find('.');
  const std::int64_t node = number_of(std::string_view(name).substr(1, dot - 1)),
                     index =
                         dot == name.npos ? 0 : number_of(std::string_view(name).substr(dot + 1));
  const Graph& graph = builder_->so_far();
  const bool is_there = node >= 0 && node < graph.size() && index >= 0 &&
                        index < std::ssize(graph.node(static_cast<NodeId>(node)).results);
  require(is_there, what, " is '", shown_json(json),
          "', which this graph does not have; give a value of it");
  into = {*builder_, {static_cast<NodeId>(node), static_cast<std::int32_t>(index)}};
}

}  // namespace tessera
