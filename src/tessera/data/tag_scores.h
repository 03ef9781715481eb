#pragma once
/// How well the words of sentences were tagged: entities found, and tags that are right.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// The tags of a sentence, a word each: "O", and in "B-PER", "I-PER" where an entity begins and
/// goes on, and its type. "E-" and "S-" end an entity, and are a whole one.
using Tags = std::vector<std::string>;

/// Whether tags of these names are about entities: each is "O", or begins with one of the four.
bool are_entity_tags(std::span<const std::string> names);

struct Entity {
  std::string type;                  // "PER"; "_" of a tag without a type
  std::int64_t first = 0, last = 0;  // words; both belong to it
  friend auto operator<=>(const Entity&, const Entity&) = default;
};

/// The entities of a sentence in their order. One begins at B, and at I where no entity of its type
/// is under way; so each sentence of tags has a meaning.
/// Source:  seqeval 1.2.2 in its default mode, which follows conlleval of CoNLL-2000.
std::vector<Entity> entities_of(const Tags& tags);

struct EntityCounts {
  std::int64_t right = 0, predicted = 0, labelled = 0;

  /// Shares from 0 to 1; 0 where there is nothing to share.
  double precision() const;
  double recall() const;
  /// The harmonic mean of the two.
  double f1() const;
};

struct TagScores {
  double accuracy = 0;                        // the share of words whose tag is right, 0 to 1
  EntityCounts all;                           // of every type together: "micro" of seqeval
  std::map<std::string, EntityCounts> types;  // those of labels and of predictions
};

/// An entity is right where type, first and last word are those of a labelled one.
/// Errors: Fault::Usage: another number of sentences, or of words in one, than there are labels.
TagScores tag_scores(std::span<const Tags> labels, std::span<const Tags> predictions);

}  // namespace tessera
