/// What happens to saved bytes: damage of any of them, and disks that are really full.

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "apps/command_test.h"
#include "as_nobody.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainToDamage =
    "train --preset llama-tiny --layers 1 --data @/text.txt --threads 1 --output ";

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void put_byte(const std::string& path, std::uintmax_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
}

/// Both ways to look at a checkpoint refuse it, by a message with the file's name: verifying it,
/// and going on from it.
void expect_refused(const Folder& folder, const std::string& checkpoint, const std::string& file,
                    bool resume) {
  const Ran verified = run({"inspect", folder / "run", "--verify"});
  EXPECT_EQ(verified.code, 4);
  EXPECT_NE(verified.err.find(file), std::string::npos) << verified.err;
  if (!resume) return;
  const Ran resumed =
      run(words(folder.expand(kTrainToDamage + ("@/other --steps 4 --resume " + checkpoint))));
  EXPECT_EQ(resumed.code, 4) << resumed.out;
  EXPECT_NE(resumed.err.find(file), std::string::npos) << resumed.err;
  EXPECT_FALSE(fs::exists(folder / "other/checkpoints"));
}

/// One bit of sampled bytes, and sampled lengths, over all files of a checkpoint as runs write it;
/// every sixteenth is resumed from as well.
TEST(Damage, SampledBytesOfACheckpoint) {
  constexpr int kFlips = 1000, kCuts = 200;
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran trained = run(words(folder.expand(kTrainToDamage + std::string("@/run --steps 2"))));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string checkpoint = folder / "run/checkpoints/step-00000002";
  const std::vector<std::string> files = files_below(checkpoint);
  ASSERT_EQ(files.size(), 2u);
  std::mt19937 random(7);
  for (int i = 0; i < kFlips + kCuts; ++i) {
    const std::string& file = files[random() % files.size()];
    const std::uintmax_t size = fs::file_size(file), at = random() % size;
    const bool resume = i % 16 == 0, flip = i < kFlips;
    SCOPED_TRACE(text(file, flip ? " flipped at " : " cut to ", static_cast<std::int64_t>(at)));
    const std::string good = read(file);
    if (flip)
      put_byte(file, at, static_cast<char>(good[at] ^ (1 << random() % 8)));
    else
      fs::resize_file(file, at);
    expect_refused(folder, checkpoint, file, resume);
    std::ofstream(file, std::ios::binary) << good;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(run({"inspect", folder / "run", "--verify"}).code, 0);
}

// ---- which checkpoint is to be used in its place

/// What uses the newest checkpoint of a run names the newest intact one, and what to type.
TEST(Damage, TheNewestIntactOneIsNamed) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string train = kTrainToDamage + std::string("@/run --steps 3 --save-every 1");
  ASSERT_EQ(run(words(folder.expand(train))).code, 0);
  const std::string all = folder / "run/checkpoints/", newest = all + "step-00000003",
                    data = newest + "/data-00000.safetensors", good = read(data),
                    manifest = read(newest + "/manifest.json");
  const struct {
    const char *name, *line, *words;
  } uses[] = {
      {"sample", "sample @/run --prompt line --tokens 1", "tessera sample"},
      {"weights",
       "train --preset llama-tiny --layers 1 --data @/text.txt --threads 1 --steps 1 "
       "--output @/new --init-from @/run",
       "--init-from"},
      {"its digest", "inspect @/run --digest", "tessera inspect --digest"},
  };
  const auto expect_advice = [&](const char* damage, const char* says) {
    for (const auto& use : uses) {
      SCOPED_TRACE(text(damage, ", ", use.name));
      const Ran ran = run(words(folder.expand(use.line)));
      EXPECT_EQ(ran.code, 4) << ran.out;
      EXPECT_NE(ran.err.find(says), std::string::npos) << ran.err;
      EXPECT_NE(ran.err.find(text("the newest intact one beside it: ", use.words, " ", all,
                                  "step-00000002")),
                std::string::npos)
          << ran.err;
      EXPECT_FALSE(fs::exists(folder / "new"));
    }
  };
  fs::resize_file(data, 100);
  expect_advice("cut short", "it has 100 bytes but ");
  std::ofstream(data, std::ios::binary) << good;
  put_byte(data, good.size() - 1, static_cast<char>(good.back() ^ 1));
  // A byte of a parameter or a moment: sampling reads parameters alone.
  EXPECT_EQ(run(words(folder.expand(uses[1].line))).code, 4);
  std::ofstream(data, std::ios::binary) << good;
  fs::remove(newest + "/manifest.json");
  expect_advice("no manifest",
                "step-00000003' has no manifest.json; restore it from a copy or use "
                "another checkpoint");
  fs::remove_all(newest);
  folder.write("run/checkpoints/step-00000003", "a file");
  expect_advice("a file", "step-00000003' is a file, not a folder");
  fs::remove(newest);
  fs::create_directory(newest);
  std::ofstream(newest + "/manifest.json") << manifest;
  std::ofstream(data, std::ios::binary) << good;
  EXPECT_EQ(run(words(folder.expand(uses[0].line))).code, 0);
}

/// What may not be read says nothing about the bytes: it is passed over by nobody.
TEST(Damage, WhatMayNotBeReadIsNotDamaged) {
  const Folder folder;
  folder.write("text.txt", some_text());
  folder.write("run.toml", "steps = 3\n");
  const std::string train = kTrainToDamage + std::string("@/run --save-every 1 --resume auto ");
  ASSERT_EQ(run(words(folder.expand(train + "--steps 2"))).code, 0);
  const std::string newest = folder / "run/checkpoints/step-00000002",
                    data = newest + "/data-00000.safetensors";
  for (const std::string& closed :
       {data, folder / "text.txt", folder / "run.toml", folder / "run/checkpoints"})
    fs::permissions(closed, fs::perms::none);
  const AsNobody nobody(folder / "");
  const auto expect_refusal = [&](const std::string& line, const std::string& file) {
    const Ran ran = run(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 5) << line << "\n" << ran.err;
    EXPECT_NE(ran.err.find("'" + file), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("Permission denied; check"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find("problems"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find("intact"), std::string::npos) << ran.err;
  };
  expect_refusal("train --config @/run.toml", folder / "run.toml");
  expect_refusal("sample @/run --prompt a", folder / "run/checkpoints");
  expect_refusal("inspect @/run/checkpoints/step-00000002", newest);
}

TEST(Damage, ARunDoesNotGoBackBehindWhatItMayNotRead) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string train = kTrainToDamage + std::string("@/run --save-every 1 --resume auto ");
  ASSERT_EQ(run(words(folder.expand(train + "--steps 2"))).code, 0);
  const std::string data = folder / "run/checkpoints/step-00000002/data-00000.safetensors";
  fs::permissions(data, fs::perms::none);
  const AsNobody nobody(folder / "");
  for (const std::string& line : {train + "--steps 3", std::string("sample @/run --prompt a"),
                                  std::string("inspect @/run --verify")}) {
    const Ran ran = run(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 5) << line << "\n" << ran.out;
    EXPECT_NE(ran.err.find(text("cannot read '", data, "': Permission denied; check its ")),
              std::string::npos)
        << ran.err;
  }
}

// ---- full disks

/// A small file system of its own in memory, which goes away with the test; none where the system
/// refuses it.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& folder) : folder_(folder) {
    fs::create_directory(folder);
    mounted_ = mounts_are_private() && mount("size=4m", 0);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  /// Other limits than those that it begins with, 4 MiB.
  void limit(const char* options) {
    ASSERT_TRUE(mount(options, MS_REMOUNT)) << options << ": " << std::strerror(errno);
  }

 private:
  /// Mounts of this process are seen by no other from now on. Who is not root may have them in a
  /// name space of users, where the system allows that: to a process of one thread.
  static bool mounts_are_private() {
    if (::unshare(CLONE_NEWNS) != 0 && !unshare_users()) return false;
    return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }
  static bool unshare_users() {
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    // Everybody stays who he is.
    return tell("setgroups", "deny") && tell("uid_map", text(user, " ", user, " 1")) &&
           tell("gid_map", text(group, " ", group, " 1"));
  }
  static bool tell(const std::string& file, const std::string& line) {
    return (std::ofstream("/proc/self/" + file) << line << std::flush).good();
  }
  bool mount(const char* options, unsigned long flags) const {
    return ::mount("tmpfs", folder_.c_str(), "tmpfs", flags, options) == 0;
  }

  std::string folder_;
  bool mounted_ = false;
};

/// A text to train on, and a small disk.
struct FullDisk : testing::Test {
  void SetUp() override {
    if (!disk.mounted()) GTEST_SKIP() << "the system allows no small disk; nothing was tested";
    folder.write("text.txt", some_text());
  }
  /// `arguments`: where to, and what else.
  Ran train(const std::string& arguments) {
    return run(words(folder.expand(kTrainToDamage + arguments)));
  }

  const Folder folder;
  SmallDisk disk{folder / "disk"};
};

/// Fills a disk to the last byte. Returns the file that does.
std::string fill(const std::string& folder) {
  const std::string path = folder + "/ballast";
  std::ofstream file(path, std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) continue;
  return path;
}

/// The disk is full from the second step on: saves and metrics are refused, the checkpoint of
/// before stays, the run says so and ends with code 5. With room again it goes on to the state of
/// the undisturbed run.
TEST_F(FullDisk, ARunStopsAndGoesOn) {
  const std::string steps = " --steps 12 --save-every 2 --resume auto";
  ASSERT_EQ(train("@/whole" + steps).code, 0);
  ASSERT_EQ(train("@/disk/run --exit-interval 2" + steps).code, 0);
  const std::string ballast = fill(folder / "disk");

  const Ran full = train("@/disk/run" + steps);
  EXPECT_EQ(full.code, 5) << full.out;
  EXPECT_NE(full.err.find(folder.expand("'@/disk/run")), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(run({"inspect", folder / "disk/run", "--verify"}).code, 0);

  fs::remove(ballast);
  const Ran again = train("@/disk/run" + steps);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(run({"inspect", folder / "disk/run", "--digest"}).out,
            run({"inspect", folder / "whole", "--digest"}).out);
}

/// The disk fills up while the run is under way, until it takes no line of the metrics, and then
/// has room again.
TEST_F(FullDisk, ARunGoesOnWhenThereIsRoomAgain) {
  const std::string steps = " --steps 4000 --context 16 --global-batch-size 2";
  std::thread meanwhile([&] {
    using namespace std::chrono_literals;
    const std::string metrics = folder / "disk/run/metrics.jsonl";
    const auto step_done = [&](int step) {
      return read(metrics).find(text("\"step\":", step, ",")) != std::string::npos;
    };
    for (int i = 0; i < 30'000 && !step_done(200); ++i) std::this_thread::sleep_for(1ms);
    const std::string ballast = fill(folder / "disk");
    std::uintmax_t before = 0, size = fs::file_size(metrics);
    for (int i = 0; i < 1000 && size != before; ++i) {
      std::this_thread::sleep_for(100ms);
      before = std::exchange(size, fs::file_size(metrics));
    }
    fs::remove(ballast);
  });
  const Ran ran = train("@/disk/run" + steps);
  meanwhile.join();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("No space left on device"), std::string::npos) << ran.out;
  ASSERT_EQ(train("@/whole" + steps).code, 0);
  EXPECT_EQ(run({"inspect", folder / "disk/run", "--digest"}).out,
            run({"inspect", folder / "whole", "--digest"}).out);
  const auto lines = [&](const std::string& name) {
    return split(read(folder / (name + "/metrics.jsonl")), '\n').size();
  };
  EXPECT_EQ(lines("disk/run"), lines("whole")) << "a line of the metrics is lost";
}

TEST_F(FullDisk, TooSmallForTheLastSave) {
  disk.limit("size=400k");
  const Ran ran = train("@/disk/run --steps 3");
  EXPECT_EQ(ran.code, 5) << ran.out;
  EXPECT_TRUE(
      ran.err.starts_with(folder.expand("error: step 3 is not saved: cannot save a checkpoint in "
                                        "'@/disk/run/checkpoints': it takes ")))
      << ran.err;
  EXPECT_TRUE(ran.err.ends_with(
      folder.expand(" is free; free some space or keep fewer checkpoints; there is no checkpoint "
                    "yet; then resume with --config @/disk/run/config.toml --resume auto\n")))
      << ran.err;
}

/// No file can be made, though there is room for bytes: found by the system alone.
TEST_F(FullDisk, NoMoreFiles) {
  // The disk, the run's folder, its lock, metrics and configuration, the folder of checkpoints and
  // that of a save; no file in it.
  disk.limit("size=64m,nr_inodes=7");
  const Ran ran = train("@/disk/run --steps 9 --save-every 2");
  EXPECT_EQ(ran.code, 5) << ran.out;
  EXPECT_NE(ran.err.find("No space left on device; free some space"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(folder.expand("'@/disk/run/checkpoints")), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("notice: step 2 is not saved: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("notice: step 4 is not saved: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("; it is failure 3 in a row; there is no checkpoint yet; "),
            std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace tessera
