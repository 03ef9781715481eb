/// Every switch of the table, every pair of them, and all together, on a tiny model and four
/// devices: the losses are the plain run's within what the table says, or the run is refused with
/// words that name both.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "apps/command_test.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/switch_table.h"
#include "tessera/apps/training.h"
#include "tessera/base/text.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "tessera/train/callbacks.h"
#include "worst.h"

namespace tessera {
namespace {

constexpr std::int64_t kSteps = 3;

struct LossesOfSteps : TrainCallback {
  void on_step(const StepRecord& record) override { losses.push_back(record.loss); }
  std::vector<double> losses;
};

struct Outcome {
  std::vector<double> losses;  // empty: it was refused
  std::string refusal;
};

/// The largest difference of two curves, relative.
double distance(const std::vector<double>& one, const std::vector<double>& other) {
  double out = one.size() == other.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    out = worse_of(out, std::abs(one[i] - other[i]) / std::abs(one[i]));
  return out;
}

const SwitchRow& row_of(std::string_view name) {
  const std::span<const SwitchRow> table = switch_table();
  return *std::ranges::find_if(table, [&](const SwitchRow& row) { return name == row.name; });
}

/// The switch that is on where `row` needs one.
const SwitchRow& needed_by(const SwitchRow& row) { return row_of(split(row.needs, ' ')[0]); }

double tolerance_of(const SwitchRow& row) {
  return row.needs[0] == '\0' ? row.tolerance
                              : std::max(row.tolerance, tolerance_of(needed_by(row)));
}

class SwitchPairs : public testing::Test {
 protected:
  SwitchPairs() {
    IndexedDatasetWriter writer(folder_ / "tokens", TokenType::U16);
    for (std::int32_t d = 0; d < 60; ++d) {
      std::vector<std::int32_t> ids;
      for (std::int32_t i = 0; i < 24; ++i) ids.push_back((d * 5 + i * i) % 32);
      writer.add_sequence(ids);
      writer.end_document();
    }
    writer.finish();
  }

  /// Trains with flags of the sets beside those of all runs.
  Outcome run(const std::vector<Arguments>& sets, int devices = 4) {
    Arguments arguments = words(folder_.expand(
        text("--preset gpt2-tiny --layers 2 --heads 4 --width 32 --ffn-width 64 --context 16 "
             "--vocab-size 32 --dropout 0.1 --data @/tokens --split 100,0,0 --steps ",
             kSteps, " --global-batch-size 8 --no-eval-at-end --threads 1 --devices ", devices,
             " --output @/run")));
    for (const Arguments& set : sets) arguments.insert(arguments.end(), set.begin(), set.end());
    Problems problems;
    std::vector<std::string> notices;
    const ParsedFlags parsed = parse_flags(arguments, field_flags(), problems);
    const RunConfig config = configure(parsed, problems, notices);
    Outcome out;
    for (const Error& problem : problems.list()) out.refusal += text(problem.what(), "\n");
    if (!out.refusal.empty()) return out;
    std::ostringstream said, errors;
    Console console{said, errors};
    LossesOfSteps steps;
    const int code = measure_training(config, console, steps);
    if (code != 0) out.refusal = errors.str();
    if (code == 0) out.losses = steps.losses;
    std::filesystem::remove_all(folder_ / "run");
    return out;
  }

  /// Sets of as many switches as go together, so that each switch is in one. `fit`: which pairs do.
  void expect_all_together(const std::vector<double>& plain,
                           const std::vector<std::vector<bool>>& fit) {
    const std::span<const SwitchRow> table = switch_table();
    std::vector<bool> done(table.size(), false);
    for (std::size_t first = 0; first < table.size(); ++first) {
      if (done[first]) continue;
      std::vector<std::size_t> members = {first}, others;
      for (std::size_t i = first + 1; i < table.size(); ++i) others.push_back(i);
      for (std::size_t i = first; i-- > 0;) others.push_back(i);
      for (const std::size_t i : others) {
        const bool fits = std::ranges::all_of(members, [&](std::size_t m) { return fit[m][i]; });
        if (fits) members.push_back(i);
      }
      std::vector<Arguments> flags;
      std::string told;
      double tolerance = 0;
      for (const std::size_t m : members) {
        done[m] = true;
        flags.push_back(flags_of(table[m]));
        told += text(told.empty() ? "" : " + ", table[m].name);
        tolerance = std::max(tolerance, tolerance_of(table[m]));
      }
      SCOPED_TRACE(told);
      RecordProperty(text("set_with_", table[first].name), told);
      const Outcome all = run(flags, 16);
      EXPECT_EQ(all.refusal, "");
      EXPECT_LE(distance(plain, all.losses), tolerance);
    }
  }

  /// Those of the switch, behind those of the one that it needs.
  Arguments flags_of(const SwitchRow& row) const {
    Arguments out = row.needs[0] == '\0' ? Arguments() : flags_of(needed_by(row));
    // On a CPU nothing but a file keeps to a cap so low.
    if (row.name == std::string_view("memory-cap")) out = flags_of(row_of("nvme"));
    for (const std::string& flag : split(row.flags, ' ')) out.push_back(flag);
    const std::string sample = row.sample;
    if (row.value[0] != '\0') out.back() += "=" + (sample == "{}" ? folder_ / "" : sample);
    return out;
  }

  Folder folder_;
};

/// Messages name the switch by its field, however it was written.
bool names(const std::string& refusal, const SwitchRow& row) {
  for (const std::string& flag : split(row.flags, ' ')) {
    std::string name = flag.substr(2, flag.find('=') - 2);
    if (name.starts_with("no-")) name = name.substr(3);
    if (refusal.find(name) != std::string::npos) return true;
  }
  return row.needs[0] != '\0' && names(refusal, needed_by(row));
}

/// One run holds two switches to what the table says: their losses beside the plain run's, and
/// where one of them changes no bit, beside those of the other alone.
TEST_F(SwitchPairs, CombineOrAreRefused) {
  const std::span<const SwitchRow> table = switch_table();
  const Outcome plain = run({});
  ASSERT_EQ(static_cast<std::int64_t>(plain.losses.size()), kSteps) << plain.refusal;
  std::vector<Outcome> alone;
  for (const SwitchRow& row : table) {
    SCOPED_TRACE(row.name);
    alone.push_back(run({flags_of(row)}));
    EXPECT_EQ(alone.back().refusal, "");
    EXPECT_LE(distance(plain.losses, alone.back().losses), tolerance_of(row));
  }
  int ran = 0, refused = 0;
  const std::string_view chooses = "memory-cap";  // other things, beside another switch
  std::vector<std::vector<bool>> fit(table.size(), std::vector<bool>(table.size(), true));
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (std::size_t j = i + 1; j < table.size(); ++j) {
      const SwitchRow &a = table[i], &b = table[j];
      SCOPED_TRACE(text(a.name, " and ", b.name));
      const Outcome both = run({flags_of(a), flags_of(b)});
      fit[i][j] = fit[j][i] = !both.losses.empty();
      ++(both.losses.empty() ? refused : ran);
      if (both.losses.empty()) {
        EXPECT_TRUE(names(both.refusal, a) && names(both.refusal, b)) << both.refusal;
        continue;
      }
      EXPECT_LE(distance(plain.losses, both.losses), std::max(tolerance_of(a), tolerance_of(b)));
      const auto changes_no_bit = [&](const SwitchRow& one, const SwitchRow& other) {
        return one.tolerance == 0 && one.needs[0] == '\0' && other.name != chooses;
      };
      if (changes_no_bit(b, a)) {
        EXPECT_EQ(distance(alone[i].losses, both.losses), 0);
      }
      if (changes_no_bit(a, b)) {
        EXPECT_EQ(distance(alone[j].losses, both.losses), 0);
      }
    }
  }
  RecordProperty("ran", ran);
  RecordProperty("refused", refused);
  expect_all_together(plain.losses, fit);
}

}  // namespace
}  // namespace tessera
