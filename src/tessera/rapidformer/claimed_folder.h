#pragma once
/// A new folder that no other process takes, though nothing is in it yet.

#include <memory>
#include <string>
#include <utility>

namespace tessera {

/// Made by this process, and gone with this where nothing lies in it by then.
class ClaimedFolder {
 public:
  /// None where it is there already. Errors: Fault::Resource: it cannot be made.
  static std::unique_ptr<ClaimedFolder> take(const std::string& path);
  ~ClaimedFolder();
  ClaimedFolder(const ClaimedFolder&) = delete;
  ClaimedFolder& operator=(const ClaimedFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ClaimedFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tessera
