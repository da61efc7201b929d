"""An encoder unknown to transformers: gated layers, rotary positions in buffers that no checkpoint holds.

A checkpoint of it is written by a test, which then lies beside these files as on the hub.
"""

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput

from .configuration import NewConfig


class Layer(nn.Module):
    """Attention with rotary positions, then a gated feed-forward layer."""

    def __init__(self, config):
        super().__init__()
        size = config.hidden_size
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.gate, self.up, self.down = (nn.Linear(size, size) for _ in range(3))
        self.norm = nn.LayerNorm(size)

    def forward(self, hidden, mask, angles):
        query, key, value = self.qkv(hidden).chunk(3, dim=-1)
        query, key = turn(query, angles), turn(key, angles)
        scores = (query @ key.transpose(1, 2)) / hidden.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, :].bool(), torch.finfo(scores.dtype).min)
        hidden = self.norm(hidden + self.out(scores.softmax(-1) @ value))
        return self.norm(hidden + self.down(torch.nn.functional.gelu(self.gate(hidden)) * self.up(hidden)))


def turn(states, angles):
    left, right = states.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


class NewPreTrainedModel(PreTrainedModel):
    config_class = NewConfig
    base_model_prefix = "new"

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.3)


class NewModel(NewPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        half = config.hidden_size // 2
        places = torch.arange(config.max_position_embeddings)
        self.register_buffer("places", places, persistent=False)
        self.register_buffer("frequencies", 100.0 ** (-torch.arange(half) / half), persistent=False)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, **_):
        hidden = self.embeddings(input_ids)
        angles = self.places[: input_ids.shape[1], None] * self.frequencies
        for layer in self.layers:
            hidden = layer(hidden, attention_mask, angles)
        return BaseModelOutput(last_hidden_state=hidden)


class NewForSequenceClassification(NewPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.new = NewModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, **_):
        hidden = self.new(input_ids, attention_mask).last_hidden_state
        return SequenceClassifierOutput(logits=self.classifier(hidden[:, 0]))
