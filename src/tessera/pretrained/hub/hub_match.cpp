#include "tessera/pretrained/hub/hub_match.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub/hub_names.h"
#include "tessera/pretrained/hub/hub_rows.h"

namespace tessera {

namespace {

constexpr std::int64_t kElementsAtATime = 1 << 20;

/// "mlm" of "mlm.dense.weight": what begins anew as one.
std::string_view head_of(std::string_view ours) { return ours.substr(0, ours.find('.')); }
/// The same, and the heads that it is of.
std::pair<std::string_view, TaskHead> head_of(const HubTensor& tensor) {
  return {head_of(tensor.ours), tensor.heads};
}

/// Calls `visit` with pieces of a tensor, until it returns false.
template <typename Visit>
void each_piece(const HubWeights& weights, const std::string& name, const Visit& visit) {
  const std::int64_t all = weights.find(name)->type.numel();
  std::vector<float> values;
  for (std::int64_t first = 0; first < all; first += kElementsAtATime) {
    values.resize(static_cast<std::size_t>(std::min(kElementsAtATime, all - first)));
    weights.read(name, first, values);
    if (!visit(first, values)) return;
  }
}

/// Also of two that are no numbers, as a model that diverged has them, where their bits are alike.
bool same_number(float a, float b) {
  return a == b || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Builds a HubMatch.
class Matcher {
 public:
  Matcher(const HubFamily& family, const HubWeights& weights, const HubConfig& from,
          const std::string& folder, std::string_view or_else, HubModel& model)
      : family_(family),
        weights_(weights),
        from_(from),
        folder_(folder),
        or_else_(or_else),
        model_(model),
        names_(family, hub_tensors(family, model.config, HubHeads::OfAllTasks), weights, folder) {}

  HubMatch match() {
    for (const HubTie& tie : family_.ties) settle(tie);
    // The head is in the table where the model is not tied.
    std::vector<HubTensor> table = hub_tensors(family_, model_.config, HubHeads::OfAllTasks);
    refuse_missing(table);
    for (const HubTensor& tensor : table) add(tensor);
    for (const HubConstant& constant : family_.constants) check_constant(constant);
    tell_unused();
    return std::move(out_);
  }

 private:
  /// By its name of the table, or by that of a tie.
  std::string find(const std::string& theirs) const {
    const std::string found = names_.find(theirs);
    const auto other = stands_for_.find(theirs);
    return !found.empty() || other == stands_for_.end() ? found : other->second;
  }

  void settle(const HubTie& tie);
  void refuse_missing(const std::vector<HubTensor>& table) const;
  void add(const HubTensor& tensor);
  void check_constant(const HubConstant& constant);
  void tell_unused();
  bool equal(const std::string& a, const std::string& b) const;

  const HubFamily& family_;
  const HubWeights& weights_;
  const HubConfig& from_;
  const std::string& folder_;
  const std::string_view or_else_;
  HubModel& model_;
  const HubNames names_;
  std::map<std::string, std::string, std::less<>> stands_for_;  // by name of the table
  std::set<std::string> used_;
  HubMatch out_;
};

bool Matcher::equal(const std::string& a, const std::string& b) const {
  const StoredTensor &first = *weights_.find(a), &second = *weights_.find(b);
  if (first.type.shape != second.type.shape) return false;
  bool same = true;
  std::vector<float> other;
  each_piece(weights_, a, [&](std::int64_t at, const std::vector<float>& values) {
    other.resize(values.size());
    weights_.read(b, at, other);
    return same = std::ranges::equal(values, other, same_number);
  });
  return same;
}

void Matcher::settle(const HubTie& tie) {
  if (tie.may_differ && !model_.config.tied_head) return;
  if (tie.is_in != nullptr && !tie.is_in(model_.config)) return;
  const std::string also = names_.find(tie.also);
  if (also.empty()) return;
  const std::string table = find(std::string(tie.theirs));
  if (table.empty()) {
    stands_for_.emplace(tie.theirs, also);
    if (tie.may_differ && family_.has_own_head(model_.config))
      model_.notices.push_back(text("'", folder_, "' has '", printable(also), "' and lacks '",
                                    tie.theirs, "': it is used for both, as a tied head"));
    used_.insert(also);
    return;
  }
  if (equal(table, also)) {
    used_.insert(also);
    return;
  }
  if (!is_of(tie.heads, model_.task.task->hub_head))
    return;  // a head that is not read: told as such
  const std::string why = shaping_text(family_.keys, from_);
  if (!tie.may_differ)
    fail(Fault::Checkpoint, weights_.file_of(also), ": tensor '", printable(also),
         "' differs from '", printable(table), "', and a model of ", family_.model_type,
         " has one tensor for both here", why.empty() ? "" : text(" (", why, ")"),
         "; remove the wrong one");
  if (!family_.has_own_head(model_.config))
    model_.notices.push_back(
        text("'", folder_, "': tensor '", printable(also), "' differs from '", printable(table),
             "', so the head is a separate matrix, although config.json ties the two"));
  family_.untie(model_.config);
}

void Matcher::refuse_missing(const std::vector<HubTensor>& table) const {
  std::set<std::pair<std::string_view, TaskHead>> heads_there;
  for (const HubTensor& tensor : table) {
    if (tensor.heads != TaskHead::None && !find(tensor.theirs).empty())
      heads_there.insert(head_of(tensor));
  }
  std::vector<std::string> lacking;
  std::set<std::string_view> seen;  // several of ours may be parts of one of theirs
  for (const HubTensor& tensor : table) {
    const bool of_class = model_.task.named && is_of(tensor.heads, model_.task.task->hub_head);
    const bool wanted =
        tensor.heads == TaskHead::None || of_class || heads_there.contains(head_of(tensor));
    if (wanted && find(tensor.theirs).empty() && seen.insert(tensor.theirs).second)
      lacking.push_back(names_.spelt(tensor.theirs));
  }
  if (lacking.empty()) return;
  std::vector<std::string> why = {missing_sizes(family_.keys, from_),
                                  switches_text(family_.keys, from_)};
  std::erase(why, "");
  const bool joined = std::ranges::any_of(weights_.names(), [](std::string_view name) {
    return name.ends_with(".experts.gate_up_proj");
  });
  fail(Fault::Checkpoint, "'", folder_, "' lacks ", lacking.size(), " of the tensors that ",
       from_.path(), " describes: ", some_of(lacking),
       why.empty() ? "" : text(" (in it ", join(why), ")"),
       joined ? "; its experts are joined (gate_up_proj): write it again by transformers' "
                "save_pretrained, which parts them"
              : "; download it again",
       or_else_);
}

void Matcher::add(const HubTensor& tensor) {
  const std::string found = find(tensor.theirs);
  if (found.empty()) return;
  used_.insert(found);
  const StoredTensor& stored = *weights_.find(found);
  if (!stored.other_dtype.empty() || !is_float(stored.type.dtype))
    fail(Fault::Checkpoint, weights_.file_of(found), ": tensor '", printable(found), "' is of ",
         stored.other_dtype.empty() ? std::string(to_text(stored.type.dtype)) : stored.other_dtype,
         "; weights are read from F32, F64, BF16 and F16");
  const Shape& theirs = stored.type.shape;
  if (theirs.ndim() == 0)
    fail(Fault::Checkpoint, weights_.file_of(found), ": tensor '", printable(found),
         "' is a single number");
  const bool transposed = tensor.order == HubOrder::InOut && theirs.ndim() == 2;
  Shape shape = theirs;
  if (transposed) shape = {theirs[1], theirs[0]};
  if (tensor.rows == HubRows::OneRow && theirs.ndim() == 2 && theirs[0] == 1) shape = {theirs[1]};
  if (tensor.rows == HubRows::Expert && shape.ndim() == 2) shape = {1, shape[0], shape[1]};
  if (const std::optional<HubTurns> turns = hub_turns(tensor.rows); turns && shape.ndim() > 1) {
    const std::int64_t results = theirs.back() / turns->of;
    shape = theirs.ndim() > 2 ? Shape{theirs[0], results, theirs[1]} : Shape{theirs[0], results};
  }
  shape[0] = our_row_count(tensor.rows, shape[0]);
  const auto [at, is_new] = out_.parameters.emplace(tensor.ours, shape);
  if (!is_new) at->second[0] += shape[0];
  out_.sources[tensor.ours].push_back({found, tensor.rows, transposed, tensor.expert});
}

void Matcher::check_constant(const HubConstant& constant) {
  const std::string name = names_.find(constant.name);
  if (name.empty()) return;
  used_.insert(name);
  const Shape wanted = constant.shape(model_.config);
  if (weights_.find(name)->type.shape != wanted)
    fail(Fault::Checkpoint, weights_.file_of(name), ": tensor '", printable(name), "' is ",
         weights_.find(name)->type.shape, "; ", from_.path(), " makes it ", wanted, " (",
         sizes_text(family_.keys, from_), ")");
  each_piece(weights_, name, [&](std::int64_t first, const std::vector<float>& values) {
    for (std::int64_t i = first; i < first + std::ssize(values); ++i) {
      const double found = values[static_cast<std::size_t>(i - first)],
                   right = constant.at(model_.config, i);
      if (!(std::abs(found - right) <= constant.within))
        fail(Fault::Data, weights_.file_of(name), ": tensor '", printable(name), "' has ", found,
             " as element ", i, " in place of ", right, "; it must be ", constant.why);
    }
    return true;
  });
}

void Matcher::tell_unused() {
  std::vector<std::string> unused;
  for (const std::string& name : weights_.names()) {
    const std::string bare = names_.bare(name);
    const bool unread = std::ranges::any_of(
        family_.unread, [&](std::string_view pattern) { return matches(pattern, bare); });
    if (!used_.contains(name) && !unread) unused.push_back(name);
  }
  if (!unused.empty() && family_.refuses_unused)
    fail(Fault::Checkpoint, "'", folder_, "' has ", unused.size(), " tensors that a model of ",
         family_.model_type, " has not: ", some_of(unused), "; remove them if they mean nothing");
  if (!unused.empty())
    model_.notices.push_back(
        text("tensors of '", folder_, "' not used by this model: ", some_of(unused)));
}

}  // namespace

HubMatch match_tensors(const HubFamily& family, const HubWeights& weights, const HubConfig& from,
                       const std::string& folder, std::string_view or_else, HubModel& model) {
  HubMatch out = Matcher(family, weights, from, folder, or_else, model).match();
  for (const std::string& notice : weights.notices()) model.notices.push_back(notice);
  check_shapes(out, family, weights, from, model.config);
  return out;
}

void check_shapes(const HubMatch& match, const HubFamily& family, const HubWeights& weights,
                  const HubConfig& from, const ModelConfig& model, std::string_view anew) {
  const auto wanted = parameter_shapes(model);
  for (const auto& [name, sources] : match.sources) {
    const auto found = wanted.find(name);
    if (found == wanted.end() || (!anew.empty() && head_of(name) == anew)) continue;
    const ModelConfig stack = of_stack(model, name);
    for (const HubSource& source : sources) {
      const Shape theirs = weights.find(source.name)->type.shape,
                  right = hub_shape(source.rows, source.transposed, found->second, stack);
      if (theirs == right) continue;
      // Rows of heads are products of several keys.
      bool has_keys = source.rows == HubRows::All && theirs.ndim() == right.ndim();
      std::vector<std::string> keys;
      for (int d = 0; has_keys && d < right.ndim(); ++d) {
        if (theirs[d] == right[d]) continue;
        keys.push_back(keys_of_size(family.keys, from, right[d]));
        has_keys = !keys.back().empty();
      }
      const std::string open = open_sizes(family.keys, from);
      fail(Fault::Checkpoint, weights.file_of(source.name), ": tensor '", printable(source.name),
           "' is ", theirs, "; ", from.path(), " makes it ", right, " (",
           has_keys ? join(keys, "; ") : sizes_text(family.keys, from),
           has_keys && !open.empty() ? "; " : "", has_keys ? open : "", ")");
    }
  }
}

}  // namespace tessera
