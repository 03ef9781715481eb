#include "tessera/c_api/optimizer_words.h"

#include "tessera/base/error.h"

namespace tessera {

namespace {

ParameterGroup group_of_json(CallFields fields) {
  ParameterGroup out;
  out.paths = fields.need<std::vector<std::string>>("paths");
  fields.get("weight_decay", out.weight_decay);
  fields.get("lr_scale", out.lr_scale);
  fields.get("optional", out.optional);
  fields.finish();
  return out;
}

}  // namespace

OptimizerConfig optimizer_of(CallFields fields) {
  OptimizerConfig out;
  fields.get_word("kind", kOptimizerNames, out.kind);
  fields.get("beta1", out.beta1);
  fields.get("beta2", out.beta2);
  fields.get("eps", out.eps);
  fields.get("momentum", out.momentum);
  fields.get("nesterov", out.nesterov);
  fields.get("min_trust_ratio", out.min_trust_ratio);
  fields.get("max_trust_ratio", out.max_trust_ratio);
  fields.get("weight_decay", out.weight_decay);
  fields.get("clip", out.clip);
  out.schedule.kind = ScheduleKind::Constant;
  fields.get_word("schedule", kScheduleNames, out.schedule.kind);
  fields.get("lr", out.schedule.lr);
  fields.get("min_lr", out.schedule.min_lr);
  fields.get("warmup_steps", out.schedule.warmup_steps);
  fields.get("decay_steps", out.schedule.decay_steps);
  if (const CallJson* groups = fields.find("groups")) {
    require(groups->is_array(), fields.what(), ": groups is ", shown_json(*groups),
            "; give a list of groups");
    for (const CallJson& group : *groups)
      out.groups.push_back(group_of_json({group, fields.what() + ": a group"}));
  }
  fields.finish();
  const FieldProblems wrong = problems(out);
  require(wrong.empty(), fields.what(), ": ", join(wrong.texts(), "; "));
  return out;
}

}  // namespace tessera
