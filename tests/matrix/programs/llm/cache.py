"""Keys and values of the tokens so far: of a fixed length, or growing."""
import torch


class StaticCache:
    """Blocks of the longest length for the greatest batch, written at a position in place."""

    def __init__(self, config, batch, device):
        shape = (config.layers, batch, config.key_heads, config.length, config.head_width)
        self.keys, self.values = torch.zeros(shape, device=device), torch.zeros(shape, device=device)
        self.places = torch.arange(config.length, device=device)

    def extend(self, layer, key, value, position):
        batch = key.shape[0]
        self.keys[layer, :batch].index_copy_(2, position, key)
        self.values[layer, :batch].index_copy_(2, position, value)
        return self.keys[layer, :batch], self.values[layer, :batch]

    def mask(self, position):
        return self.places > position


class GrowingCache:
    """Keys and values are concatenated, so that each token has other shapes."""

    def __init__(self, config, batch, device):
        self.layers = [None] * config.layers

    def extend(self, layer, key, value, position):
        old = self.layers[layer]
        if old is not None:
            key, value = torch.cat([old[0], key], 2), torch.cat([old[1], value], 2)
        self.layers[layer] = (key, value)
        return key, value

    def mask(self, position):
        return None
