#pragma once
/// Permissions as a user without privileges has them, also where tests run as root.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace tessera {

/// While it lives, this process is nobody, for whom `folder` is opened; whoever is not root stays
/// who it is.
class AsNobody {
 public:
  explicit AsNobody(const std::filesystem::path& folder) : was_root_(geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    if (!was_root_) return;
    std::filesystem::permissions(folder, std::filesystem::perms(0777));
    EXPECT_EQ(seteuid(kNobody), 0);
  }
  ~AsNobody() {
    if (!was_root_) return;
    EXPECT_EQ(seteuid(0), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool was_root_;
};

}  // namespace tessera
