#pragma once
/// Models as they were published, with their recipes: sizes that machines with hundreds of devices
/// train, and that any machine plans.

#include "tessera/config/config.h"

namespace tessera::published_presets {

void bert_large(RunConfig& c);
void gpt3_6_7b(RunConfig& c);
void gpt3_175b(RunConfig& c);
void llama_7b(RunConfig& c);
void llama_70b(RunConfig& c);
void mixtral_8x7b(RunConfig& c);
void deepseek_v3(RunConfig& c);
void pangu_alpha_2_6b(RunConfig& c);
void pangu_alpha_13b(RunConfig& c);
void pangu_alpha_200b(RunConfig& c);

}  // namespace tessera::published_presets
