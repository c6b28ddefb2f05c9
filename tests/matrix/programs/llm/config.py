"""The sizes of a model."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    words: int = 64
    width: int = 32
    heads: int = 4
    key_heads: int = 2
    layers: int = 2
    length: int = 32

    @property
    def head_width(self):
        return self.width // self.heads
