"""The layers of a GPT in PyTorch, whole or in pipeline stages, with bf16 weights and random tokens."""

from __future__ import annotations

import functools
from typing import Any

from rubato.capture.kernels import Shape


def layers_of(shape: Shape, stages: int, stage: int) -> int:
    """How many layers a stage holds: as `rubato pipeline --model` shares them out."""
    return shape.layers * (stage + 1) // stages - shape.layers * stage // stages


@functools.cache
def _classes(torch: Any) -> Any:
    nn: Any = torch.nn
    functional = torch.nn.functional

    class Block(nn.Module):
        def __init__(self, shape: Shape) -> None:
            super().__init__()
            width = shape.channels
            self.heads, self.head_size = shape.heads, shape.head_size
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.attproj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.fcproj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, sequence, width = x.shape
            split = self.qkv(self.norm1(x)).view(batch, sequence, 3, self.heads, self.head_size)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            context = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attproj(context.transpose(1, 2).reshape(batch, sequence, width))
            return x + self.fcproj(functional.gelu(self.fc(self.norm2(x)), approximate="tanh"))

    class Stage(nn.Module):
        """Layers of one pipeline stage: the first begins with the embedding, the last ends with the loss."""

        def __init__(self, shape: Shape, layers: int, first: bool, last: bool) -> None:
            super().__init__()
            if first:
                self.words = nn.Embedding(shape.vocabulary, shape.channels)
                self.positions = nn.Embedding(shape.sequence, shape.channels)
            self.blocks = nn.ModuleList(Block(shape) for _ in range(layers))
            if last:
                self.norm = nn.LayerNorm(shape.channels)
                # A stage that has the embedding as well shares its weights, as GPT does.
                self.head = self.words if first else nn.Embedding(shape.vocabulary, shape.channels)
            self.first, self.last = first, last

        def forward(self, x: Any, targets: Any = None) -> Any:
            if self.first:
                x = self.words(x) + self.positions.weight
            for block in self.blocks:
                x = block(x)
            if not self.last:
                return x
            logits = functional.linear(self.norm(x), self.head.weight)
            return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    return Stage


def stage_module(torch: Any, shape: Shape, stages: int = 1, stage: int = 0, device: str = "cuda") -> Any:
    """One of `stages` stages; with one stage the whole GPT."""
    layers = layers_of(shape, stages, stage)
    with torch.device(device):  # where weights are drawn: a processor takes ten seconds for 1.3 billion
        module = _classes(torch)(shape, layers, stage == 0, stage + 1 == stages)
    return module.to(dtype=torch.bfloat16)


def random_tokens(torch: Any, shape: Shape, device: str = "cuda") -> Any:
    """Random tokens of a microbatch, shape [batch, sequence], below the vocabulary's size."""
    return torch.randint(0, shape.vocabulary, (shape.batch, shape.sequence), device=device)
