"""Kernels to measure: the operations of a GPT training step, as callables for PyTorch."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Workload:
    """`make(torch)` allocates and returns a function that launches the kernel once."""

    name: str
    make: Callable
    flops: float
    dram_bytes: float


BF16 = 2  # bytes


def gpt_workloads(batch=8, sequence=1024, hidden=2048, heads=16, vocabulary=50304):
    """One workload per kind of kernel of a layer, forward sizes; GEMMs also as in the backward pass."""
    tokens, head = batch * sequence, hidden // heads

    def tensor(torch, *shape, dtype=None):
        return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16)

    def gemm(name, m, n, k):
        def make(torch):
            a, b = tensor(torch, m, k), tensor(torch, k, n)
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            return lambda: torch.mm(a, b, out=out)

        return Workload(name, make, 2.0 * m * n * k, BF16 * (m * k + k * n + m * n))

    def unary(name, function, count, reads=1, writes=1, flops=1.0, shape=None):
        def make(torch):
            x = tensor(torch, *(shape or (tokens, count // tokens)))
            return lambda: function(torch, x)

        return Workload(name, make, flops * count, BF16 * count * (reads + writes))

    def attention(torch):
        q, k, v = (tensor(torch, batch, heads, sequence, head) for _ in range(3))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def embedding(torch):
        table = tensor(torch, vocabulary, hidden)
        index = torch.randint(vocabulary, (tokens,), device="cuda")
        return lambda: torch.nn.functional.embedding(index, table)

    def cross_entropy(torch):
        logits = tensor(torch, tokens // 4, vocabulary)
        target = torch.randint(vocabulary, (tokens // 4,), device="cuda")
        return lambda: torch.nn.functional.cross_entropy(logits, target)

    def adam(torch):
        size = 4 * hidden * hidden
        weight = torch.nn.Parameter(tensor(torch, size))
        weight.grad = tensor(torch, size)
        optimizer = torch.optim.AdamW([weight], fused=True)
        return optimizer.step

    wide = tokens * 4 * hidden
    return [
        gemm("gemm_qkv", tokens, 3 * hidden, hidden),
        gemm("gemm_attproj", tokens, hidden, hidden),
        gemm("gemm_fc", tokens, 4 * hidden, hidden),
        gemm("gemm_fcproj", tokens, hidden, 4 * hidden),
        gemm("gemm_weight_gradient", 4 * hidden, hidden, tokens),
        Workload("attention", attention, 2.0 * batch * heads * sequence * sequence * head,
                 4 * BF16 * tokens * hidden),
        unary("layernorm", lambda t, x: t.nn.functional.layer_norm(x, (hidden,)), tokens * hidden, flops=8.0),
        unary("softmax", lambda t, x: t.softmax(x, -1), batch * heads * sequence * sequence,
              shape=(batch * heads * sequence, sequence), flops=8.0),
        unary("gelu", lambda t, x: t.nn.functional.gelu(x), wide, flops=10.0),
        unary("dropout", lambda t, x: t.nn.functional.dropout(x, 0.1), wide),
        unary("residual", lambda t, x: x + x, tokens * hidden),
        unary("bias_gradient", lambda t, x: x.sum(0), wide, writes=0),
        unary("copy", lambda t, x: x.clone(), wide, flops=0.0),
        Workload("embedding", embedding, 0.0, 2 * BF16 * tokens * hidden),
        Workload("cross_entropy", cross_entropy, 5.0 * tokens // 4 * vocabulary,
                 BF16 * tokens // 4 * vocabulary),
        Workload("adam", adam, 12.0 * 4 * hidden * hidden, 7 * BF16 * 4 * hidden * hidden),
    ]
