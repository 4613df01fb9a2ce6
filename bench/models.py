"""The models that the bench runs: transformers' configs at full size, with random weights.

Each function gives a module that takes its inputs by position and gives one tensor, and the inputs.
"""

import nets
import torch
import transformers as hf

T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}


class OneTensor(torch.nn.Module):
    """A model of transformers as a function of tensors that gives one tensor."""

    def __init__(self, model, takes, gives, **fixed):
        super().__init__()
        self.model, self.takes, self.gives, self.fixed = model, takes, gives, fixed

    def forward(self, *inputs):
        named = dict(zip(self.takes, inputs, strict=True))
        return self.model(**named, **self.fixed)[self.gives]


def tokens(batch, length):
    return torch.randint(0, 30000, (batch, length))


def encoder(config, batch=1):
    model = hf.BertModel(config)
    return OneTensor(model, ["input_ids"], "last_hidden_state"), (tokens(batch, 128),)


def causal(model):
    return OneTensor(model, ["input_ids"], "logits", use_cache=False), (tokens(1, 128),)


def seq2seq(model, gives, source, target):
    takes = ["input_ids", "decoder_input_ids"]
    return OneTensor(model, takes, gives, use_cache=False), (tokens(1, source), tokens(1, target))


def vision(model):
    return OneTensor(model, ["pixel_values"], "last_hidden_state"), (torch.randn(1, 3, 224, 224),)


def calibrated(model, inputs):
    """Statistics of real activations: with the initial ones they grow, or vanish, with depth."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        model.train()(torch.randn(4, *inputs[0].shape[1:]))
    return model, inputs


def convolutional(model):
    return calibrated(*vision(model))


def plain(model, size=224):
    return calibrated(model, (torch.randn(1, 3, size, size),))


def bert():
    return encoder(hf.BertConfig())


def minilm():
    return encoder(
        hf.BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
        ),
        batch=8,
    )


def gpt2():
    return causal(hf.GPT2LMHeadModel(hf.GPT2Config()))


def llama():
    return causal(
        hf.LlamaForCausalLM(
            hf.LlamaConfig(
                hidden_size=1024,
                intermediate_size=2816,
                num_hidden_layers=12,
                num_attention_heads=16,
                vocab_size=32000,
            )
        )
    )


class GivenRows:
    """A key/value cache of transformers in tensors that it is given: it writes one position."""

    is_compileable = True

    def __init__(self, position, keys, values):
        self.position, self.keys, self.values = position, keys, values

    def update(self, key, value, layer, *_, **__):
        return tuple(
            cache[layer].index_copy_(2, self.position, new)
            for cache, new in ((self.keys, key), (self.values, value))
        )

    def get_seq_length(self, layer=0):
        return 0

    def get_mask_sizes(self, *_):
        return self.keys[0].shape[2], 0


class DecodeStep(torch.nn.Module):
    """One token of a language model, whose cache of `length` positions is filled already."""

    def __init__(self, model, length):
        super().__init__()
        self.model, self.layers = model, model.config.num_hidden_layers
        config = model.config
        width = config.hidden_size // config.num_attention_heads
        for name in (f"{kind}_{n}" for kind in ("keys", "values") for n in range(self.layers)):
            rows = torch.randn(1, config.num_key_value_heads, length, width)
            self.register_buffer(name, rows)

    def forward(self, token, position):
        keys, values = (
            [getattr(self, f"{kind}_{n}") for n in range(self.layers)]
            for kind in ("keys", "values")
        )
        seen = torch.arange(keys[0].shape[2]) <= position
        return self.model(
            token,
            attention_mask=seen[None, None, None, :],
            position_ids=position[None],
            past_key_values=GivenRows(position, keys, values),
        ).logits


def llama_decode():
    model, _ = llama()
    return DecodeStep(model.model, 256), (tokens(1, 1), torch.tensor([128]))


def t5():
    return seq2seq(hf.T5ForConditionalGeneration(hf.T5Config(**T5_SMALL)), "logits", 128, 16)


def t5_short():
    return seq2seq(hf.T5Model(hf.T5Config(**T5_SMALL)), "last_hidden_state", 14, 4)


def vit():
    return vision(hf.ViTModel(hf.ViTConfig()))


def swin():
    return vision(hf.SwinModel(hf.SwinConfig()))


def convnext():
    return vision(hf.ConvNextModel(hf.ConvNextConfig()))


def resnet50():
    return convolutional(hf.ResNetModel(hf.ResNetConfig()))


def mobilenetv2():
    return convolutional(hf.MobileNetV2Model(hf.MobileNetV2Config()))


def efficientnet():
    """EfficientNet-B0."""
    config = hf.EfficientNetConfig(
        width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, image_size=224
    )
    return convolutional(hf.EfficientNetModel(config))


def resnet18():
    return convolutional(
        hf.ResNetModel(
            hf.ResNetConfig(
                depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic"
            )
        )
    )


def regnet():
    """RegNetY-800MF."""
    config = hf.RegNetConfig(
        depths=[1, 3, 8, 2], hidden_sizes=[64, 144, 320, 784], groups_width=16, layer_type="y"
    )
    return convolutional(hf.RegNetModel(config))


def vgg16():
    return plain(nets.VGG16())


def densenet121():
    return plain(nets.DenseNet121())


def unet():
    return plain(nets.UNet())


def yolo():
    return plain(nets.YOLO(), size=320)


MODELS = {
    f.__name__: f
    for f in (
        bert,
        minilm,
        gpt2,
        llama,
        llama_decode,
        t5,
        t5_short,
        vit,
        swin,
        convnext,
        resnet50,
        mobilenetv2,
        efficientnet,
    )
}

#: Run where they are named: more convolution nets.
MORE = {f.__name__: f for f in (resnet18, regnet, vgg16, densenet121, unet, yolo)}

#: For tables and pictures.
TITLES = {
    "bert": "BERT base, 1 x 128 tokens",
    "minilm": "MiniLM, 8 x 128 tokens",
    "gpt2": "GPT-2, 1 x 128 tokens",
    "llama": "Llama, 12 layers of 1,024, 1 x 128 tokens",
    "llama_decode": "The same Llama, one token after 128",
    "t5": "T5-small, 128 and 16 tokens",
    "t5_short": "T5-small, 14 and 4 tokens",
    "vit": "ViT base, 224 x 224",
    "swin": "Swin-T, 224 x 224",
    "convnext": "ConvNeXt-T, 224 x 224",
    "resnet50": "ResNet-50, 224 x 224",
    "mobilenetv2": "MobileNetV2, 224 x 224",
    "efficientnet": "EfficientNet-B0, 224 x 224",
    "resnet18": "ResNet-18, 224 x 224",
    "regnet": "RegNetY-800MF, 224 x 224",
    "vgg16": "VGG-16, 224 x 224",
    "densenet121": "DenseNet-121, 224 x 224",
    "unet": "U-Net, half as wide, 224 x 224",
    "yolo": "like YOLOv8n, 320 x 320",
}
