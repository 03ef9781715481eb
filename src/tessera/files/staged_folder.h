#pragma once
/// A folder that is written whole: a reader sees the files that it had before, or all new ones.

#include <functional>
#include <string>
#include <string_view>

namespace tessera {

/// Files are written into path(), a folder beside the one that is meant, and commit() puts it into
/// its place. Without commit() nothing stays; what a killed process left is removed by the next one
/// that writes the same folder.
///
/// Where the folder cannot be exchanged whole (a file system that does not know how, a parent that
/// cannot be written to), its files are renamed one by one, `last` behind all others, and removed
/// before them.
///
/// Errors: Fault::Resource, naming the folder and what the system said.
class StagedFolder {
 public:
  explicit StagedFolder(const std::string& folder);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& path() const { return stage_; }
  /// From now on programs that this process starts hold it too, until they end.
  void hold_in_children();
  /// `replaces(name)`: an entry of the folder that was there is gone unless it is written anew; all
  /// others stay.
  void commit(const std::function<bool(std::string_view name)>& replaces, const std::string& last);

 private:
  bool take(const std::string& stage);
  void exchange(const std::function<bool(std::string_view name)>& replaces);
  void rename_files(const std::function<bool(std::string_view name)>& replaces,
                    const std::string& last);

  std::string folder_, stage_;
  bool beside_ = true;  // else the stage lies in the folder itself
  int lock_ = -1;       // of the stage, as long as it is ours
};

}  // namespace tessera
