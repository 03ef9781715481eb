#pragma once
/// Files out of Debian packages, without being root and without installing anything.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Packages could not be had: no network, no such tool, no such package. The caller has a
/// fall-back.
class PackagesUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Fetches the newest versions of packages with `apt-get download` (which verifies their hashes
/// against the signed lists) and unpacks them with `dpkg -x` to `folder`/root, whose path it
/// returns. Where the lists of the system are missing or old, it fetches lists of its own into
/// `folder`, which takes a minute more.
///
/// `folder` exists and is ours. `tool` is apt-get, or what a test puts in its place.
/// Throws: PackagesUnavailable with the reason in one line.
std::string unpack_packages(const std::vector<std::string>& names, const std::string& folder,
                            const std::string& tool = "apt-get");

/// A new folder that disappears, with all in it, when it goes out of scope.
class TemporaryFolder {
 public:
  /// Beside `path`, where there is room for results and the right to write.
  /// Errors: Fault::Resource.
  static TemporaryFolder beside(const std::string& path);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tessera
