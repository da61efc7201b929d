"""The configuration that a checkpoint brings with its own code."""

from transformers import PretrainedConfig


class NewConfig(PretrainedConfig):
    model_type = "new"

    def __init__(self, vocab_size=32, hidden_size=32, num_hidden_layers=2, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.max_position_embeddings = 40
