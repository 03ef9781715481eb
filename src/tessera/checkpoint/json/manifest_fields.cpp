#include "tessera/checkpoint/json/manifest_fields.h"

#include <utility>

namespace tessera {

ManifestFields::ManifestFields(const nlohmann::json& object, What what, const std::string& path)
    : object_(object), what_(std::move(what)), path_(path) {
  if (!object.is_object()) bad("it is not an object");
}

const nlohmann::json& ManifestFields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) bad("its '", key, "' is missing");
  return *found;
}

std::int64_t ManifestFields::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const nlohmann::json& value = at(key);
  // A negative number is of another kind; one above 2^63 would wrap.
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxCount)
    bad("its '", key, "' is not a count");
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most)
    bad("its '", key, "' is ", number, ", not from ", least, " to ", most);
  return number;
}

std::string ManifestFields::string(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) bad("its '", key, "' is not a string");
  return value.get<std::string>();
}

const nlohmann::json& ManifestFields::array(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) bad("its '", key, "' is not a list");
  return value;
}

const nlohmann::json& ManifestFields::object(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_object()) bad("its '", key, "' is not an object");
  return value;
}

std::string ManifestFields::hash_of(const nlohmann::json& value) const {
  const auto digits = value.is_string() ? value.get<std::string>() : std::string();
  if (digits.size() != kManifestHashDigits ||
      digits.find_first_not_of("0123456789abcdef") != digits.npos)
    bad("a hash is not of ", kManifestHashDigits, " hexadecimal digits");
  return digits;
}

}  // namespace tessera
