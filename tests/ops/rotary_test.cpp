/// Rates of rotary positions: those of transformers, and what is refused.
#include "tessera/ops/rotary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "repo_file.h"
#include "tessera/base/error.h"

namespace tessera::test {

namespace {

using Json = nlohmann::json;

/// What `case_` says of a configuration, as a reader of models would give it.
Rotary rotary_of(const Json& case_) {
  const auto number = [&](const char* key, double otherwise) {
    return case_.contains(key) && !case_[key].is_null() ? case_[key].get<double>() : otherwise;
  };
  const double longest = number("longest", 0);
  const double original = number("original_max_position_embeddings", longest);
  RotaryScaling scaling{.kind = *find_rotary_kind(case_["rope_type"].get<std::string>()),
                        .factor = number("factor", longest / original),
                        .original_length = static_cast<std::int64_t>(original),
                        .low_freq_factor = number("low_freq_factor", 1),
                        .high_freq_factor = number("high_freq_factor", 4),
                        .beta_fast = number("beta_fast", 32),
                        .beta_slow = number("beta_slow", 1),
                        .truncate = case_.value("truncate", true),
                        .mscale = number("mscale", 0),
                        .mscale_all_dim = number("mscale_all_dim", 0),
                        .short_factor = case_.value("short_factor", std::vector<double>()),
                        .long_factor = case_.value("long_factor", std::vector<double>())};
  if (case_.contains("attention_factor")) scaling.attention_factor = number("attention_factor", 0);
  return {.base = number("rope_theta", 10'000),
          .share = number("partial_rotary_factor", 1),
          .scaling = scaling};
}

TEST(RotaryRates, AreThoseOfTransformers) {
  std::ifstream file(repo_file("tests/golden/rotary.json"));
  const Json golden = Json::parse(file);
  std::set<RotaryKind> kinds;
  for (const Json& c : golden["cases"]) {
    SCOPED_TRACE(c.dump());
    const Rotary rotary = rotary_of(c);
    kinds.insert(rotary.scaling.kind);
    // Without a length, transformers takes that of samples of pre-training.
    const RotaryRates got =
        rotary_rates(rotary, c["width"], c["length"].is_null() ? 1 : c["length"].get<int>());
    const auto want = c["rates"].get<std::vector<double>>();
    ASSERT_EQ(got.rates.size(), want.size());
    // Some roundings of f64 on either side; where yarn's ramp has nearly ended, 1 - ramp has lost
    // digits.
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got.rates[i], want[i], 1e-13 * want[i]);
    EXPECT_NEAR(got.factor, c["attention"].get<double>(), 1e-15);
  }
  EXPECT_EQ(kinds.size(), 6u);
}

TEST(RotaryRates, KindsHaveNames) {
  for (const RotaryKind kind : {RotaryKind::Plain, RotaryKind::Linear, RotaryKind::Dynamic,
                                RotaryKind::Llama3, RotaryKind::Yarn, RotaryKind::LongRope})
    EXPECT_EQ(find_rotary_kind(to_text(kind)), kind);
  EXPECT_EQ(to_text(RotaryKind::LongRope), "longrope");
  EXPECT_FALSE(find_rotary_kind("su"));
}

struct BadCase {
  Rotary rotary;
  const char* says;
};

TEST(RotaryRates, ErrorsSayWhatIsNeeded) {
  const BadCase bad[] = {
      {{.base = 0}, "rotary positions: base 0, share of channels 1; the base must be above 0"},
      {{.share = 1.5}, "base 10000, share of channels 1.5"},
      {{.scaling = {.kind = RotaryKind::Linear, .factor = 0}},
       "linear scaling by 0, original length 0; it needs a factor above 0 and a length of 0 or "
       "more"},
      {{.scaling = {.kind = RotaryKind::Dynamic, .factor = 2}},
       "dynamic scaling by 2, original length 0; it needs a factor above 0 and a length of 1 or "
       "more"},
      {{.share = 0.2, .scaling = {.kind = RotaryKind::Dynamic, .factor = 2, .original_length = 8}},
       "2 channels turn; dynamic scaling needs more than 2"},
      {{.scaling =
            {.kind = RotaryKind::Llama3, .factor = 2, .original_length = 8, .low_freq_factor = 4}},
       "low_freq_factor is 4, high_freq_factor is 4; they need 0 < low_freq_factor < "
       "high_freq_factor"},
      {{.base = 1, .scaling = {.kind = RotaryKind::Yarn, .factor = 2, .original_length = 8}},
       "beta_fast is 32, beta_slow is 1, the base is 1; yarn needs"},
      {{.scaling = {.kind = RotaryKind::LongRope,
                    .factor = 2,
                    .original_length = 8,
                    .short_factor = {1, 1, 1, 1, 1},
                    .long_factor = {1, 1}}},
       "long_factor has 2 numbers; it needs 5, one for each pair of the 10 channels that turn"},
      {{.scaling = {.kind = RotaryKind::LongRope,
                    .factor = 2,
                    .original_length = 64,
                    .short_factor = {1, 1},
                    .long_factor = {1, 1, 1, 1, 1}}},
       "short_factor has 2 numbers"},
      {{.scaling = {.kind = RotaryKind::LongRope,
                    .factor = 2,
                    .original_length = 64,
                    .short_factor = {1, 1, 1, 1, 1},
                    .long_factor = {1, 1, 0, 1, 1}}},
       "long_factor has 0"},
  };
  for (const BadCase& c : bad) {
    try {
      rotary_rates(c.rotary, 10, 9);
      ADD_FAILURE() << c.says << ": not refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
    }
  }
}

}  // namespace

}  // namespace tessera::test
