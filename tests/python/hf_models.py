"""Tiny models of Hugging Face: random weights, one or two layers, no network.

``MODELS`` has a maker and a function ``inputs(batch, length)`` for each. Sizes are such that a
compilation takes PyTorch about a second; what a layer alternates with its neighbour (local and
global attention, say) gets two layers.
"""

import torch
import transformers as T

WORDS = 120
TEXT = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": WORDS,
    "max_position_embeddings": 64,
}
SPECIAL = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
SEQ2SEQ = {
    "d_model": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "vocab_size": WORDS,
    "max_position_embeddings": 64,
    "forced_eos_token_id": None,
    **SPECIAL,
}
T5 = {
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 1,
    "num_heads": 4,
    "vocab_size": WORDS,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
GPT2 = {
    "n_layer": 1,
    "n_embd": 64,
    "n_head": 4,
    "vocab_size": WORDS,
    "n_positions": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def ids(batch, length):
    return torch.randint(3, WORDS, (batch, length))


def mask(batch, length):
    m = torch.ones(batch, length, dtype=torch.long)
    m[0, length - length // 3 :] = 0
    return m


def masked(batch, length):
    return {"input_ids": ids(batch, length), "attention_mask": mask(batch, length)}


def plain(batch, length):
    return {"input_ids": ids(batch, length)}


def causal(batch, length):
    return {"input_ids": ids(batch, length), "use_cache": False}


def pair(batch, length):
    return {
        **masked(batch, length),
        "decoder_input_ids": ids(batch, length // 2),
        "use_cache": False,
    }


def boxes(batch, length):
    return {**masked(batch, length), "bbox": torch.randint(0, 50, (batch, length, 4)).sort().values}


def speech(batch, length):
    return {
        "input_features": torch.randn(batch, 8, 64),
        "decoder_input_ids": ids(batch, length),
        "use_cache": False,
    }


def handwriting(batch, length):
    return {
        "pixel_values": torch.randn(batch, 3, 32, 32),
        "decoder_input_ids": ids(batch, length),
        "use_cache": False,
    }


def float_masked(batch, length):
    return {"input_ids": ids(batch, length), "attention_mask": mask(batch, length).float()}


def trocr():
    encoder = T.DeiTConfig(
        **{k: v for k, v in TEXT.items() if k not in ("vocab_size", "max_position_embeddings")},
        image_size=32,
        patch_size=16,
    )
    decoder = T.TrOCRConfig(
        **{k: v for k, v in SEQ2SEQ.items() if not k.startswith(("encoder", "forced"))},
        cross_attention_hidden_size=64,
    )
    config = T.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = T.VisionEncoderDecoderModel(config)
    model.config.decoder_start_token_id, model.config.pad_token_id = 2, 1
    return model


def whisper():
    sizes = {k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}
    return T.WhisperForConditionalGeneration(
        T.WhisperConfig(**sizes, num_mel_bins=8, max_source_positions=32, max_target_positions=64)
    )


def model(cls, config, sizes, **more):
    return lambda: cls(config(**{**sizes, **more}))


MODELS = {
    "albert": (model(T.AlbertForMaskedLM, T.AlbertConfig, TEXT, embedding_size=32), masked),
    "bart": (model(T.BartForConditionalGeneration, T.BartConfig, SEQ2SEQ), pair),
    "bert": (model(T.BertForMaskedLM, T.BertConfig, TEXT), masked),
    "bigbird": (
        model(T.BigBirdForMaskedLM, T.BigBirdConfig, TEXT, attention_type="original_full"),
        masked,
    ),
    "blenderbot_small": (
        model(T.BlenderbotSmallForConditionalGeneration, T.BlenderbotSmallConfig, SEQ2SEQ),
        pair,
    ),
    "camembert": (model(T.CamembertForMaskedLM, T.CamembertConfig, TEXT), masked),
    "deberta_v2": (
        model(
            T.DebertaV2ForMaskedLM,
            T.DebertaV2Config,
            TEXT,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            position_buckets=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            position_biased_input=False,
        ),
        masked,
    ),
    "distilbert": (
        model(
            T.DistilBertForMaskedLM,
            T.DistilBertConfig,
            {"dim": 64, "n_layers": 1, "n_heads": 4, "hidden_dim": 96, "vocab_size": WORDS},
        ),
        masked,
    ),
    "distilgpt2": (model(T.GPT2LMHeadModel, T.GPT2Config, GPT2), causal),
    "electra": (model(T.ElectraForMaskedLM, T.ElectraConfig, TEXT, embedding_size=32), masked),
    "fnet": (
        model(
            T.FNetForMaskedLM,
            T.FNetConfig,
            {k: v for k, v in TEXT.items() if k != "num_attention_heads"},
        ),
        plain,
    ),
    "gpt2_classification": (
        model(T.GPT2ForSequenceClassification, T.GPT2Config, GPT2),
        causal,
    ),
    "gpt_neo": (
        model(
            T.GPTNeoForCausalLM,
            T.GPTNeoConfig,
            {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "intermediate_size": 96},
            vocab_size=WORDS,
            max_position_embeddings=64,
            attention_types=[[["global", "local"], 1]],
            window_size=8,
            bos_token_id=1,
            eos_token_id=2,
        ),
        causal,
    ),
    "layoutlm": (
        model(T.LayoutLMForMaskedLM, T.LayoutLMConfig, TEXT, max_2d_position_embeddings=64),
        boxes,
    ),
    "longformer": (
        model(T.LongformerForMaskedLM, T.LongformerConfig, TEXT, attention_window=8),
        masked,
    ),
    "m2m100": (model(T.M2M100ForConditionalGeneration, T.M2M100Config, SEQ2SEQ), pair),
    "mbart": (model(T.MBartForConditionalGeneration, T.MBartConfig, SEQ2SEQ), pair),
    "mt5": (model(T.MT5ForConditionalGeneration, T.MT5Config, T5), pair),
    "megatron_bert": (model(T.MegatronBertForMaskedLM, T.MegatronBertConfig, TEXT), masked),
    "mobilebert": (
        model(
            T.MobileBertForMaskedLM,
            T.MobileBertConfig,
            TEXT,
            embedding_size=32,
            intra_bottleneck_size=32,
        ),
        masked,
    ),
    "opt": (
        model(
            T.OPTForCausalLM,
            T.OPTConfig,
            {k: v for k, v in TEXT.items() if k != "intermediate_size"},
            ffn_dim=96,
            word_embed_proj_dim=64,
        ),
        causal,
    ),
    "plbart": (model(T.PLBartForConditionalGeneration, T.PLBartConfig, SEQ2SEQ), pair),
    "pegasus": (model(T.PegasusForConditionalGeneration, T.PegasusConfig, SEQ2SEQ), pair),
    "roberta": (model(T.RobertaForMaskedLM, T.RobertaConfig, TEXT), masked),
    "t5": (model(T.T5ForConditionalGeneration, T.T5Config, T5), pair),
    "trocr": (trocr, handwriting),
    "xglm": (
        model(
            T.XGLMForCausalLM,
            T.XGLMConfig,
            {"d_model": 64, "num_layers": 1, "attention_heads": 4, "ffn_dim": 96},
            vocab_size=WORDS,
            max_position_embeddings=64,
        ),
        causal,
    ),
    "xlnet": (
        model(
            T.XLNetLMHeadModel,
            T.XLNetConfig,
            {"d_model": 64, "n_layer": 1, "n_head": 4, "d_inner": 96, "vocab_size": WORDS},
        ),
        float_masked,
    ),
    "convbert": (
        model(
            T.ConvBertForMaskedLM,
            T.ConvBertConfig,
            TEXT,
            embedding_size=32,
            head_ratio=2,
            conv_kernel_size=3,
        ),
        masked,
    ),
    "whisper": (whisper, speech),
    "llama": (model(T.LlamaForCausalLM, T.LlamaConfig, LLAMA), causal),
    "qwen3": (model(T.Qwen3ForCausalLM, T.Qwen3Config, LLAMA, head_dim=16), causal),
    "gemma": (
        model(
            T.Gemma2ForCausalLM,
            T.Gemma2Config,
            LLAMA,
            num_hidden_layers=2,
            head_dim=16,
            query_pre_attn_scalar=16,
            sliding_window=8,
        ),
        causal,
    ),
}
