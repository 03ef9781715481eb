#include "tessera/tokenizers/class_names.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera::tokenizer {

namespace {

/// Names for one class, with blanks between: a first name and others.
struct NamesOf {
  std::string_view first, others;
};

constexpr NamesOf kAliases[] = {
    {"BertTokenizer",
     "ElectraTokenizer LayoutLMTokenizer LxmertTokenizer MobileBertTokenizer SqueezeBertTokenizer"},
    {"LlamaTokenizer", "Phi3Tokenizer"},
    {"RobertaTokenizer", "BartTokenizer LEDTokenizer LongformerTokenizer MvpTokenizer"},
    {kFileClass, "BloomTokenizer PreTrainedTokenizer PythonBackend"},
};

/// The classes for model types of config.json, where no file names a class (transformers,
/// models/auto/tokenization_auto.py). A type that is in no row has kFileClass.
constexpr NamesOf kTypes[] = {
    {"AlbertTokenizer", "albert yoso"},
    {"BarthezTokenizer", "barthez"},
    {"BartphoTokenizer", "bartpho"},
    {"BertGenerationTokenizer", "bert-generation"},
    {"BertJapaneseTokenizer", "bert-japanese"},
    {"BertTokenizer",
     "align bark bert blip bros chinese_clip convbert distilbert electra ernie flava git "
     "grounding-dino layoutlm lxmert megatron-bert mm-grounding-dino mobilebert nezha nomic_bert "
     "qdqbert realm retribert squeezebert tvp vilt visual_bert"},
    {"BertweetTokenizer", "bertweet"},
    {"BigBirdTokenizer", "big_bird"},
    {"BioGptTokenizer", "biogpt"},
    {"BlenderbotSmallTokenizer", "blenderbot-small"},
    {"BlenderbotTokenizer", "blenderbot"},
    {"ByT5Tokenizer", "byt5"},
    {"CLIPTokenizer",
     "aimv2 clip clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3 sam3_video xclip"},
    {"CTRLTokenizer", "ctrl"},
    {"CamembertTokenizer", "camembert"},
    {"CanineTokenizer", "canine"},
    {"ClvpTokenizer", "clvp"},
    {"CodeLlamaTokenizer", "code_llama"},
    {"CohereTokenizer", "aya_vision cohere cohere2"},
    {"CpmAntTokenizer", "cpmant"},
    {"CpmTokenizer", "cpm"},
    {"DPRQuestionEncoderTokenizer", "dpr"},
    {"DebertaTokenizer", "deberta"},
    {"DebertaV2Tokenizer", "deberta-v2"},
    {"DiaTokenizer", "dia"},
    {"EsmTokenizer", "esm"},
    {"EsmcTokenizer", "esmc esmfold2"},
    {"FNetTokenizer", "fnet"},
    {"FSMTTokenizer", "fsmt"},
    {"FlaubertTokenizer", "flaubert"},
    {"FunnelTokenizer", "funnel"},
    {"GPT2Tokenizer",
     "blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip "
     "instructblipvideo jais2 opt phi starcoder2"},
    {"GPTNeoXJapaneseTokenizer", "gpt_neox_japanese"},
    {"GPTNeoXTokenizer", "falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm"},
    {"GPTSw3Tokenizer", "gpt-sw3"},
    {"GemmaTokenizer",
     "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma "
     "shieldgemma2 t5gemma zaya"},
    {"HerbertTokenizer", "herbert"},
    {"LasrTokenizer", "lasr_ctc lasr_encoder"},
    {"LayoutLMv2Tokenizer", "layoutlmv2"},
    {"LayoutLMv3Tokenizer", "layoutlmv3"},
    {"LayoutXLMTokenizer", "layoutxlm"},
    {"LlamaTokenizer", "idefics idefics2"},
    {"LukeTokenizer", "luke"},
    {"M2M100Tokenizer", "m2m_100"},
    {"MBart50Tokenizer", "mbart50"},
    {"MBartTokenizer", "mbart"},
    {"MLukeTokenizer", "mluke"},
    {"MPNetTokenizer", "mpnet"},
    {"MarianTokenizer", "marian"},
    {"MarkupLMTokenizer", "markuplm"},
    {"MgpstrTokenizer", "mgp-str"},
    {"MyT5Tokenizer", "myt5"},
    {"NllbTokenizer", "nllb nllb-moe"},
    {"NougatTokenizer", "nougat pp_formulanet"},
    {"OpenAIGPTTokenizer", "openai-gpt"},
    {"PLBartTokenizer", "plbart"},
    {"ParakeetTokenizer",
     "granite_speech5_ctc nemotron3_5_asr nemotron_asr_streaming omniasr_ctc parakeet_ctc "
     "parakeet_rnnt parakeet_tdt"},
    {"PegasusTokenizer", "pegasus"},
    {"PerceiverTokenizer", "perceiver"},
    {"PhobertTokenizer", "phobert"},
    {"ProphetNetTokenizer", "prophetnet"},
    {"Qwen2Tokenizer",
     "audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl lighton_ocr "
     "moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio "
     "qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe "
     "vibevoice"},
    {"Qwen3_5Tokenizer", "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp"},
    {"RagTokenizer", "rag"},
    {"ReformerTokenizer", "reformer"},
    {"RemBertTokenizer", "rembert"},
    {"RoCBertTokenizer", "roc_bert"},
    {"RoFormerTokenizer", "roformer"},
    {"RobertaTokenizer",
     "bart bridgetower clap data2vec-text florence2 ibert led lilt longformer mega mra mvp roberta "
     "roberta-prelayernorm"},
    {"SeamlessM4TTokenizer", "seamless_m4t seamless_m4t_v2"},
    {"Siglip2Tokenizer", "siglip2"},
    {"SiglipTokenizer", "siglip"},
    {"Speech2TextTokenizer", "speech_to_text"},
    {"SpeechT5Tokenizer", "speecht5"},
    {"SplinterTokenizer", "splinter"},
    {"T5Tokenizer", "mt5 musicgen musicgen_melody switch_transformers t5"},
    {"TapasTokenizer", "tapas"},
    {"Tipsv2Tokenizer", "tipsv2"},
    // Types for which a class that a file names does not count.
    {kFileClass,
     "EvollaModel arctic aria beam bigbird_pegasus camembertv2-base canary chatlm cohere_asr "
     "ernie4_5 ernie4_5_moe flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe "
     "glm_image glmasr got_ocr2 gpt_bigcode gradium_phonon_tts granite granitemoe "
     "granitemoehybrid granitemoeshared h2ovl_chat hyperclovax hyperclovax_vlm internlm2 "
     "internlm3 iquestcoder jamba kimi_k25 kimi_linear kosmos-2 llava llava_next mimo_v2_flash "
     "minicpm3 minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 minimax_m2 ministral ministral3 "
     "mistral mistral3 mistral_large4 mixtral modernbert modernbert-decoder molmo molmo2 "
     "nemo_speechlm nemotron nvfp4 nystromformer olmo2 olmo3 olmo_hybrid omniasr opencua openvla "
     "paddleocr_vl pegasus_x persimmon phi3 phi3_v phimoe pix2struct pixtral pocket_tts smolvlm "
     "stablelm step3_vl umt5 vipllava voxtral voxtral_realtime xlm-roberta-xl"},
    {"UdopTokenizer", "udop"},
    {"VideoPrismTokenizer", "videoprism"},
    {"VitsTokenizer", "vits"},
    {"Wav2Vec2CTCTokenizer",
     "data2vec-audio hubert unispeech unispeech-sat wav2vec2 wav2vec2-bert wav2vec2-conformer"},
    {"Wav2Vec2PhonemeCTCTokenizer", "wav2vec2_phoneme"},
    {"WhisperTokenizer", "whisper"},
    {"XGLMTokenizer", "xglm"},
    {"XLMRobertaTokenizer", "gte jina_embeddings_v3 metaclip_2 trocr xlm-roberta xmod"},
    {"XLMTokenizer", "xlm"},
    {"XLNetTokenizer", "xlnet"},
};

/// Model types whose files name a wrong class so often that transformers takes that of kTypes.
constexpr std::string_view kWrongClass =
    "hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp siglip2";

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; (at = words.find(word, at)) != words.npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return !word.empty();
  }
  return false;
}

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The class of a model type; empty: it is in no row.
std::string_view class_of_type(std::string_view type) {
  const auto* const row = std::ranges::find_if(
      kTypes, [&](const NamesOf& names) { return has_word(names.others, type); });
  return row == std::end(kTypes) ? std::string_view() : row->first;
}

}  // namespace

std::string class_of_name(std::string_view name) {
  if (name == "PreTrainedTokenizerFast") return kFileClass;
  if (name.ends_with("Fast")) name.remove_suffix(4);
  for (const NamesOf& names : kAliases) {
    if (has_word(names.others, name)) return std::string(names.first);
  }
  return std::string(name);
}

std::string class_of_configs(const nlohmann::json& config, const nlohmann::json& model_config,
                             bool byte_level) {
  const std::string in_config = text_at(config, "tokenizer_class"),
                    configured =
                        in_config.empty() ? text_at(model_config, "tokenizer_class") : in_config,
                    type = text_at(model_config, "model_type");
  const std::string_view of_type = class_of_type(type);
  if (configured.empty()) {
    if (type.empty()) return "";
    return of_type.empty() ? kFileClass : std::string(of_type);
  }
  const std::string named = class_of_name(configured);
  if (has_word(kWrongClass, type)) return std::string(of_type);
  return of_type == kFileClass || (named == "LlamaTokenizer" && byte_level) ? kFileClass : named;
}

}  // namespace tessera::tokenizer
