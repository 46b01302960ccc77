"""A small character-level transformer in PyTorch, trained on a text file, with three operators of
its own: a norm, a rotary position embedding, and one that prepares batches on a thread pool.
"""

import argparse
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TEXT = Path(__file__).resolve().parent.parent / "docs" / "how-it-works.md"

LAYERS = 2
HEADS = 4
WIDTH = 64
BLOCK = 64
BATCH = 16
RATE = 5e-3
NOISE = 0.02
REPORT_EVERY = 20

PARTS = 4
POOL = ThreadPoolExecutor(2, thread_name_prefix="prepare")


# RMSNorm: one operator to compile and to export, and only its inputs to keep for the backward.


@torch.library.custom_op("gpt::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`x` over its root mean square along the last axis, times `weight`."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


@rms_norm.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return torch.empty_like(x)


def rms_norm_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def rms_norm_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    x, weight = ctx.saved_tensors
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + ctx.eps)
    normal = x * scale
    slope = grad * weight
    grad_x = scale * (slope - normal * (slope * normal).mean(-1, keepdim=True))
    return grad_x, (grad * normal).sum_to_size(weight.shape), None


rms_norm.register_autograd(rms_norm_backward, setup_context=rms_norm_context)


# Rotary positions: the inverse of a rotation is the rotation by the negative angle, so the backward
# needs the angles and none of the values.


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x[i], x[i + half]) of the last axis."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class RotaryEmbedding(torch.autograd.Function):
    """Rotates queries or keys by angles that grow with the position; angles get no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return rotate(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return rotate(grad, cos, -sin), None, None


def rotary_angles(length: int, size: int) -> Tensor:
    """The angle of each position (rows) for each pair of a head (columns)."""
    rates = 10_000.0 ** (-torch.arange(0, size, 2) / size)
    return torch.outer(torch.arange(length).float(), rates)


# Batches: parts of a batch are cut and made noisy side by side. Each part draws from a generator of
# its own, so that the result does not depend on which thread comes first.


def prepare_part(
    text: Tensor, offsets: Tensor, block_size: int, noise: float, seed: int
) -> tuple[Tensor, Tensor]:
    windows = text[offsets[:, None] + torch.arange(block_size + 1)]
    inputs, targets = windows[:, :-1], windows[:, 1:]
    generator = torch.Generator().manual_seed(seed)
    noisy = torch.rand(inputs.shape, generator=generator) < noise
    strays = text[torch.randint(len(text), inputs.shape, generator=generator)]
    return torch.where(noisy, strays, inputs), targets


@torch.library.custom_op("gpt::prepare_batch", mutates_args=())
def prepare_batch(
    text: Tensor, offsets: Tensor, block_size: int, noise: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Inputs, a share `noise` of them replaced at random, and the targets: the next characters."""
    jobs = [
        POOL.submit(prepare_part, text, part, block_size, noise, seed + i)
        for i, part in enumerate(offsets.chunk(PARTS))
    ]
    inputs, targets = zip(*(job.result() for job in jobs), strict=True)
    return torch.cat(inputs), torch.cat(targets)


@prepare_batch.register_fake
def _(
    text: Tensor, offsets: Tensor, block_size: int, noise: float, seed: int
) -> tuple[Tensor, Tensor]:
    shape = (offsets.shape[0], block_size)
    return text.new_empty(shape), text.new_empty(shape)


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        q = RotaryEmbedding.apply(q, cos, sin)
        k = RotaryEmbedding.apply(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = RMSNorm(WIDTH), Attention()
        self.norm2 = RMSNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, characters, bias=False)
        angles = rotary_angles(BLOCK, WIDTH // HEADS)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return self.head(self.norm(x))


def train(model: GPT, data: Tensor, steps: int, seed: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(steps + 1):
        offsets = torch.randint(len(data) - BLOCK, (BATCH,))
        inputs, targets = prepare_batch(data, offsets, BLOCK, NOISE, seed + PARTS * step)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        if step % REPORT_EVERY == 0 or step == steps:
            print(f"step {step:4d}   loss {loss.item():.3f}")
        if step < steps:  # the last batch is only looked at
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


@torch.no_grad()
def sample(model: GPT, start: Tensor, length: int, temperature: float = 0.7) -> Tensor:
    tokens = start[None]
    for _ in range(length):
        scores = model(tokens[:, -BLOCK:])[:, -1] / temperature
        tokens = torch.cat((tokens, torch.multinomial(scores.softmax(-1), 1)), dim=1)
    return tokens[0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a small transformer on a text file.")
    parser.add_argument("text", nargs="?", type=Path, default=TEXT, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=60, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)

    text = options.text.read_text(encoding="utf-8")
    if len(text) <= BLOCK:
        parser.error(f"{options.text} has {len(text)} characters: more than {BLOCK} are needed")
    characters = sorted(set(text))
    codes = {character: code for code, character in enumerate(characters)}
    data = torch.tensor([codes[character] for character in text])

    torch.set_num_threads(1)  # for matrices this small, threads would only wait for each other
    torch.manual_seed(options.seed)
    model = GPT(len(characters))
    print(f"{len(text)} characters; a blind guess has loss {math.log(len(characters)):.3f}")
    train(model, data, options.steps, options.seed)
    print("".join(characters[code] for code in sample(model, data[:8], 80).tolist()))


if __name__ == "__main__":
    main()
