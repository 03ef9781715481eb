#pragma once
/// What the keys of a config.json mean: a row each, by which it is read, judged and written.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/models/config.h"
#include "tessera/models/task_kind.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// Where a value goes; monostate: nowhere.
using HubSlot = std::variant<std::monostate, std::int64_t ModelConfig::*, double ModelConfig::*,
                             bool ModelConfig::*, std::string ModelConfig::*>;
/// monostate: none.
using HubValue = std::variant<std::monostate, std::int64_t, double, bool, std::string_view>;

enum class HubUse {
  Field,  // it goes to `slot`
  Rate,   // the same, a share from 0 to below 1
  Same,   // a share that is `slot`'s here; another one is told, and `slot`'s is used
  Must,   // it must be `must`, or one of the words that mean the same; else `why`
  Own,    // the family's functions read and write it
};
enum class HubWrite { Always, IfMissing, Never };

/// A key. Its kind (a whole number, a number, true or false, a text) is that of `standard`.
struct HubKey {
  std::string_view key;
  HubUse use = HubUse::Field;
  HubSlot slot = {};
  HubValue standard = {};      // in transformers, where the key is missing
  HubValue null = {};          // what null means; monostate: null is refused
  std::string_view also = {};  // another name of it, which transformers reads too
  HubValue must = {};
  std::string_view words = {};  // all that a text can be, with blanks; the first is written
  std::string_view why = {};    // why nothing else can be
  double least = -std::numeric_limits<double>::infinity();  // of numbers with fractions
  double most = std::numeric_limits<double>::infinity();
  std::int64_t behind = 0;          // the key counts so many more than the slot
  TaskHead heads = TaskHead::None;  // of models with these alone; None: of all
  HubWrite write = HubWrite::Always;
  bool required = false;  // nothing stands for it where it is missing
  bool shapes = false;    // of HubUse::Own: which tensors there are, or their shapes, depend on it
};

/// Blocks of rows, some of which several families have.
using HubKeys = std::span<const std::span<const HubKey>>;

/// A key that must be true or false, or a number.
constexpr HubKey must_be(std::string_view key, HubValue must, std::string_view why,
                         HubWrite write = HubWrite::IfMissing) {
  return {
      .key = key, .use = HubUse::Must, .standard = must, .must = must, .why = why, .write = write};
}
/// A key that only files of earlier versions have.
constexpr HubKey must_have_been(std::string_view key, HubValue must, std::string_view why) {
  return must_be(key, must, why, HubWrite::Never);
}

/// Reads all keys. `notices`: rates that differ, keys that nobody knows.
///
/// `harmless`: keys that change no number here, with blanks; beside those of all families. Errors:
/// Fault::Data: HubConfig's; a value that is not computed here; a key that is nearly called like
/// one that is missing.
void read_keys(HubKeys keys, std::string_view harmless, const HubConfig& from, ModelConfig& to,
               std::vector<std::string>& notices);
/// Writes all of them; what `to` has of other keys stays.
void write_keys(HubKeys keys, const ModelConfig& from, HubJson& to);

/// What can have made a size `extent`: "vocab_size is 64", "n_embd is missing and is 768 in
/// transformers"; empty: no key has it.
std::string keys_of_size(HubKeys keys, const HubConfig& config, std::int64_t extent);
/// "head_dim is missing and so as others say": sizes that follow from others; empty: none.
std::string open_sizes(HubKeys keys, const HubConfig& config);
/// "n_head is missing and so 12": sizes that config.json leaves to transformers; empty: none.
std::string missing_sizes(HubKeys keys, const HubConfig& config);
/// "n_embd is 32, n_head is missing and so 12": all sizes.
std::string sizes_text(HubKeys keys, const HubConfig& config);
/// "new_decoder_architecture is missing": the family's own, by which tensors are others; empty:
/// none.
std::string shaping_text(HubKeys keys, const HubConfig& config);
/// "attention_bias is true": switches that are on and usually are not, or add biases; empty: none.
std::string switches_text(HubKeys keys, const HubConfig& config);

}  // namespace tessera
