#pragma once
/// Fields of a manifest's JSON, checked as they are read.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

inline constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kManifestHashDigits = 32;

template <typename... Parts>
[[noreturn]] void damaged_manifest(const std::string& path, const Parts&... parts) {
  fail(Fault::Checkpoint, "checkpoint file '", path, "': ", parts...,
       "; restore it from a copy or use another checkpoint");
}

/// A JSON object whose fields are checked as they are read.
class ManifestFields {
 public:
  /// `what` says in messages which object it is: asked for only where one is needed, because names
  /// may be long and slices many.
  using What = std::function<std::string()>;
  ManifestFields(const nlohmann::json& object, What what, const std::string& path);
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most = kMaxCount) const;
  std::string string(const char* key) const;
  std::string hash(const char* key) const { return hash_of(at(key)); }
  const nlohmann::json& array(const char* key) const;
  const nlohmann::json& object(const char* key) const;
  bool has(const char* key) const { return object_.contains(key); }
  const nlohmann::json& at(const char* key) const;
  std::string hash_of(const nlohmann::json& value) const;
  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    damaged_manifest(path_, what_(), ": ", parts...);
  }

 private:
  const nlohmann::json& object_;
  What what_;
  const std::string& path_;
};

}  // namespace tessera
