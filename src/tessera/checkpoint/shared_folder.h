#pragma once
/// Whether all ranks see one folder: each writes its own part of a checkpoint there.

#include <memory>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint_files.h"

namespace tessera {

/// Of rank 0: a file in an unfinished checkpoint's folder that the others are to find, and where
/// each is to leave one. All of it is gone when this goes out of scope.
class SharedFolderProbe {
 public:
  /// Errors: Fault::Resource: `folder` cannot be made or written.
  SharedFolderProbe(const std::string& folder, const FileCalls& calls);
  ~SharedFolderProbe();
  const std::string& path() const { return path_; }
  /// `answers`: those of probe_folder, by rank. Errors: Fault::Resource: a rank found nothing,
  /// could not write, or what it wrote is not here.
  void require(const std::vector<std::string>& answers) const;

 private:
  std::string folder_, path_;
  const FileCalls& calls_;
  bool made_;  // the folder, which goes too
  std::unique_ptr<UnfinishedFolder> unfinished_;
};

/// Of the others: looks for the leader's file at `path` and writes one. Returns "host" or "host:
/// what went wrong".
std::string probe_folder(const std::string& path, int rank, const FileCalls& calls);

}  // namespace tessera
