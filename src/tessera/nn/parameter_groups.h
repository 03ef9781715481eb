#pragma once
/// Groups of parameters, by their paths: other weight decay and learning rate than the rest.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The parameters whose path matches one of `paths`. If a parameter is in several groups, the last
/// one holds, as a whole.
struct ParameterGroup {
  std::vector<std::string> paths;  // '*' stands for any characters
  /// Of all of them, biases and norms too; none: as the optimizer's, for two or more dims only.
  std::optional<double> weight_decay = {};
  double lr_scale = 1;    // the learning rate is multiplied by it
  bool optional = false;  // paths may match nothing; otherwise each has to match a parameter
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// `decay` for all parameters, whatever their dims, but none for those that are called norm or
/// bias: for models with other parameters of one dim that should decay.
std::vector<ParameterGroup> decay_groups(double decay = 0.1);

/// The group that holds for `path`; nullptr: none.
const ParameterGroup* group_of(std::string_view path, const std::vector<ParameterGroup>& groups);

/// Adds `group` where it is not the last one already.
void set_last(std::vector<ParameterGroup>& groups, const ParameterGroup& group);

/// Errors: a pattern that matches none of the parameters; the message has near ones.
void require_matches(const std::vector<ParameterGroup>& groups,
                     const std::vector<std::string>& parameters);

}  // namespace tessera
