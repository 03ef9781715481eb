/// Power cuts: what was not flushed may be gone, in any mixture that a file system allows.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// A disk that knows what a power cut leaves: bytes of a file as they were when it was flushed,
/// names of a folder as they were when that was flushed, or as they are now, as the system may
/// write them at any time.
class Disk {
 public:
  Disk() {
    const FileCalls real;
    calls.open = [=, this](const char* path, int flags, mode_t mode) {
      const int file = real.open(path, flags, mode);
      if ((flags & O_CREAT) != 0) created(path);
      return cut(file);
    };
    calls.mkdir = [=, this](const char* path, mode_t mode) {
      const int made = real.mkdir(path, mode);
      adopt(path);
      return cut(made);
    };
    calls.fsync = [=, this](int file) {
      flushed(fs::read_symlink(text("/proc/self/fd/", file)));
      return cut(0);
    };
    calls.write = [=, this](int file, const void* bytes, std::size_t size) {
      return cut(real.write(file, bytes, size));
    };
    calls.rename = [=, this](const char* from, const char* to) {
      return cut(real.rename(from, to));
    };
    calls.remove = [=, this](const char* path) { return cut(real.remove(path)); };
  }

  FileCalls calls;
  std::function<void()> at_each_call;

  /// A folder that was there before.
  void adopt(const std::string& folder) {
    created(folder);
    folders_.insert(id(folder));
  }

  /// Makes `copy` what a cut now would leave of `folder`: names that were flushed or, where asked
  /// for, those of now; of the folder itself and of those in it.
  void leave(const std::string& folder, const std::string& copy, bool new_names,
             bool new_names_below) const {
    fs::create_directories(copy);
    leave(id(folder), folder, copy, new_names, new_names_below);
  }

 private:
  using Names = std::map<std::string, int>;  // the file or folder of each name

  template <typename Result>
  Result cut(Result result) const {
    const int error = errno;
    if (at_each_call) at_each_call();
    errno = error;
    return result;
  }
  static ino_t inode(const std::string& path) {
    struct stat info = {};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }
  // Numbers of inodes come back after a removal, ours do not.
  void created(const std::string& path) { ids_[inode(path)] = next_++; }
  int id(const std::string& path) const {
    const auto at = ids_.find(inode(path));
    return at == ids_.end() ? -1 : at->second;
  }
  Names names_now(const std::string& folder) const {
    Names out;
    for (const auto& entry : fs::directory_iterator(folder))
      out[entry.path().filename()] = id(entry.path());
    return out;
  }
  void flushed(const std::string& path) {
    if (fs::is_directory(path))
      names_[id(path)] = names_now(path);
    else
      bytes_[id(path)] = read_file(path);
  }
  void leave(int folder_id, const std::string& folder, const std::string& copy, bool new_names,
             bool new_names_below) const {
    const auto flushed_names = names_.find(folder_id);
    Names names = flushed_names == names_.end() ? Names() : flushed_names->second;
    if (new_names && fs::is_directory(folder) && id(folder) == folder_id) names = names_now(folder);
    for (const auto& [name, file] : names) {
      const std::string to = text(copy, "/", name);
      if (folders_.contains(file)) {
        fs::create_directory(to);
        leave(file, text(folder, "/", name), to, new_names_below, new_names_below);
      } else {
        const auto bytes = bytes_.find(file);
        std::ofstream(to, std::ios::binary) << (bytes == bytes_.end() ? "" : bytes->second);
      }
    }
  }

  std::map<ino_t, int> ids_;
  int next_ = 0;
  std::map<int, std::string> bytes_;
  std::map<int, Names> names_;
  std::set<int> folders_;
};

std::string save_step(const std::string& folder, std::int64_t step, const FileCalls& calls) {
  std::vector<std::byte> bytes(200, static_cast<std::byte>(step));
  const std::vector<CheckpointTensor> tensors = {
      {"a", {DType::F32, {50}, {}}, Role::Parameter, bytes},
      {"b", {DType::I64, {}, {}}, Role::Counter, std::span(bytes).first(8)}};
  return save_checkpoint(folder, {step, step, {}}, tensors,
                         {.keep_last = 1, .file_bytes = 100, .calls = calls});
}

/// At each call of a save that prunes the one before it, the power goes. What is left holds the old
/// checkpoint or the new one, whole; the new one once the save has returned; and saving goes on.
TEST(PowerCut, AtEachCallOfASave) {
  const TestFolder folder;
  const std::string checkpoints = folder / "checkpoints";
  fs::create_directory(checkpoints);
  Disk disk;
  disk.adopt(checkpoints);
  FileCalls unflushed;
  unflushed.fsync = [](int) { return 0; };
  const std::string before = digest(Checkpoint::open(save_step(checkpoints, 10, disk.calls)));
  const std::string after = digest(Checkpoint::open(save_step(folder / "other", 20, unflushed)));
  int old_ones = 0, new_ones = 0;
  const auto cut = [&] {
    for (const bool names : {false, true}) {
      for (const bool names_below : {false, true}) {
        SCOPED_TRACE(text("new names ", names, ", below ", names_below));
        const std::string left = folder / "left";
        fs::remove_all(left);
        disk.leave(checkpoints, left, names, names_below);
        const auto latest = latest_checkpoint(left);
        ASSERT_TRUE(latest.has_value());
        const std::string found = digest(Checkpoint::open(*latest));
        EXPECT_TRUE(found == before || found == after) << *latest;
        ++(found == before ? old_ones : new_ones);
        save_step(left, 30, unflushed);
        ASSERT_EQ(std::distance(fs::directory_iterator(left), {}), 1) << "leftovers stay";
      }
    }
  };
  disk.at_each_call = cut;
  save_step(checkpoints, 20, disk.calls);
  EXPECT_GE(old_ones, 60);
  EXPECT_GE(new_ones, 20);
  disk.at_each_call = nullptr;
  old_ones = new_ones = 0;
  cut();
  EXPECT_EQ(new_ones, 4) << "a save that returned is not on disk";
}

}  // namespace
}  // namespace tessera
