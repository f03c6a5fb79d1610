"""The kernels of a GPT training step, one by one, under the names of `rubato trace show gpt3-xl`.

FLOPs and bytes are counted from shapes: each operand of each PyTorch call moves once. Re-reads
that a cache cannot hold are not in them, and element-wise FLOPs are rough.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

from rubato.errors import UsageError

ELEMENT_BYTES = 2  # bf16

Call = Callable[[], Any]  #: launches the kernel once
Build = Callable[[Any, str], Call]  #: (module torch, device): allocates the operands
Size = tuple[int, ...]  #: of an operand, in elements


@dataclass(frozen=True)
class Shape:
    """A GPT model and its batch; the defaults are GPT-3-xl as shipped with rubato."""

    layers: int = 24
    channels: int = 2048
    heads: int = 16
    sequence: int = 1024
    batch: int = 40
    vocabulary: int = 50304

    @property
    def tokens(self) -> int:
        """Tokens of a batch."""
        return self.batch * self.sequence

    @property
    def head_size(self) -> int:
        """Channels of a head."""
        return self.channels // self.heads


@dataclass(frozen=True)
class Kernel:
    """What one launch does, and `build(torch, device)`, which returns the call to measure. None: not counted."""

    name: str
    flop: Optional[float]
    dram_bytes: Optional[float]
    build: Build
    kind: str = "other"  # class of kernels, as in captures
    capturable: bool = True  # may go into a CUDA graph


def _random(torch: Any, device: str, *shape: int) -> Any:
    return torch.randn(shape, device=device, dtype=torch.bfloat16)


def _matmul(name: str, m: int, n: int, k: int, operands: str, batch: int = 1, bias: bool = False) -> Kernel:
    """out[n, m] = a[n, k] b[k, m]; `operands` says how a and b lie in memory, 't' for transposed."""
    elements = batch * (m * n + n * k + k * m) + (m if bias else 0)

    def build(torch: Any, device: str) -> Call:
        lead = (batch,) if batch > 1 else ()
        a = _random(torch, device, *lead, *((k, n) if operands[0] == "t" else (n, k)))
        b = _random(torch, device, *lead, *((m, k) if operands[1] == "t" else (k, m)))
        out = _random(torch, device, *lead, n, m)
        a = a.mT if operands[0] == "t" else a
        b = b.mT if operands[1] == "t" else b
        if bias:
            offset = _random(torch, device, m)
            return lambda: torch.addmm(offset, a, b, out=out)
        return lambda: torch.matmul(a, b, out=out)

    return Kernel(name, 2.0 * m * n * k * batch, ELEMENT_BYTES * elements, build,
                  "gemm_batched" if batch > 1 else "gemm")


def _streaming(name: str, kind: str, elements_moved: int, flop: float, operand_shapes: Sequence[Size],
               call: Callable[..., Any], extra_bytes: int = 0) -> Kernel:
    """`call(torch, *operands)` on random operands of the given shapes."""

    def build(torch: Any, device: str) -> Call:
        operands = [_random(torch, device, *shape) for shape in operand_shapes]
        return lambda: call(torch, *operands)

    return Kernel(name, float(flop), ELEMENT_BYTES * elements_moved + extra_bytes, build, kind)


def _permute(name: str, shape: Size, order: Size) -> Kernel:
    elements = 1
    for size in shape:
        elements *= size
    return _streaming(name, "permute", 2 * elements, 0, [shape], lambda torch, x: x.permute(order).contiguous())


def _layernorm(name: str, s: Shape, residual: bool) -> Kernel:
    width, elements = s.channels, s.tokens * s.channels

    def call(torch: Any, x: Any, y: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x + y if residual else x, (width,), weight, bias)

    shape = (s.tokens, width)
    # x + y reads two and writes one before the norm reads and writes one.
    return _streaming(name, "residual_layernorm" if residual else "layernorm",
                      (5 if residual else 2) * elements + 2 * width, (9 if residual else 8) * elements, [shape, shape if residual else (1,), (width,), (width,)], call, 8 * s.tokens)


def _layernorm_backward(name: str, s: Shape) -> Kernel:
    width, elements = s.channels, s.tokens * s.channels

    def build(torch: Any, device: str) -> Call:
        x, grad = (_random(torch, device, s.tokens, width) for _ in range(2))
        weight, bias = (_random(torch, device, width) for _ in range(2))
        _, mean, rstd = torch.native_layer_norm(x, [width], weight, bias, 1e-5)
        backward = torch.ops.aten.native_layer_norm_backward
        return lambda: backward(grad, x, [width], mean, rstd, weight, bias, [True, True, True])

    return Kernel(name, 20.0 * elements, ELEMENT_BYTES * 3 * elements + 8 * s.tokens, build, "layernorm")


def _bias_backward(name: str, s: Shape, width: int) -> Kernel:
    return _streaming(name, "bias", s.tokens * width + width, s.tokens * width, [(s.tokens, width)],
                      lambda torch, grad: grad.sum(0))


def _bias_reduce(name: str, s: Shape) -> Kernel:
    blocks = 5  # partial sums that 80 SMs leave, see llm.c's matmul_backward_bias

    def build(torch: Any, device: str) -> Call:
        partial = torch.randn(blocks, s.channels, device=device)
        return lambda: partial.sum(0)

    return Kernel(name, float(blocks * s.channels), 4.0 * (blocks + 1) * s.channels, build, "bias_reduce")


def _gelu(name: str, s: Shape) -> Kernel:
    elements = 4 * s.tokens * s.channels
    return _streaming(name, "gelu", 2 * elements, 10 * elements, [(s.tokens, 4 * s.channels)],
                      lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"))


def _gelu_backward(name: str, s: Shape) -> Kernel:
    elements = 4 * s.tokens * s.channels
    shape = (s.tokens, 4 * s.channels)
    return _streaming(name, "gelu", 3 * elements, 24 * elements, [shape, shape],
                      lambda torch, grad, x: torch.ops.aten.gelu_backward(grad, x, approximate="tanh"))


def _softmax(name: str, s: Shape) -> Kernel:
    elements = s.batch * s.heads * s.sequence**2
    return _streaming(name, "softmax", 2 * elements, 5 * elements, [(s.batch * s.heads, s.sequence, s.sequence)],
                      lambda torch, x: torch.softmax(x, -1))


def _softmax_backward(name: str, s: Shape) -> Kernel:
    elements = s.batch * s.heads * s.sequence**2
    shape = (s.batch * s.heads, s.sequence, s.sequence)
    return _streaming(name, "softmax", 3 * elements, 4 * elements, [shape, shape],
                      lambda torch, grad, p: torch.ops.aten._softmax_backward_data(grad, p, -1, grad.dtype))


def _tokens(torch: Any, device: str, s: Shape) -> Any:
    return torch.randint(0, s.vocabulary, (s.tokens,), device=device)


def _embedding(name: str, s: Shape) -> Kernel:
    elements = s.tokens * s.channels

    def build(torch: Any, device: str) -> Call:
        tokens = _tokens(torch, device, s).view(s.batch, s.sequence)
        words = _random(torch, device, s.vocabulary, s.channels)
        positions = _random(torch, device, s.sequence, s.channels)
        return lambda: torch.nn.functional.embedding(tokens, words) + positions

    rows = min(s.vocabulary, s.tokens) * s.channels + s.sequence * s.channels
    return Kernel(name, float(elements), ELEMENT_BYTES * (3 * elements + rows) + 8 * s.tokens, build, "embedding")


def _embedding_backward(name: str, s: Shape) -> Kernel:
    elements = s.tokens * s.channels

    def build(torch: Any, device: str) -> Call:
        tokens, grad = _tokens(torch, device, s), _random(torch, device, s.tokens, s.channels)
        return lambda: torch.ops.aten.embedding_dense_backward(grad, tokens, s.vocabulary, -1, False)

    moved = elements + s.vocabulary * s.channels
    # It sorts the tokens and may wait for the host, which a graph cannot.
    return Kernel(name, float(elements), ELEMENT_BYTES * moved + 8 * s.tokens, build, "embedding", capturable=False)


def _classifier(name: str, s: Shape) -> Kernel:
    """Cross-entropy, forward and backward: loss and (softmax - one-hot) over the logits."""
    elements = s.tokens * s.vocabulary

    def build(torch: Any, device: str) -> Call:
        logits = _random(torch, device, s.tokens, s.vocabulary)
        grad = torch.empty_like(logits)
        targets = _tokens(torch, device, s).unsqueeze(1)
        minus_one = torch.full(targets.shape, -1.0, device=device, dtype=grad.dtype)

        def call() -> Any:
            torch.softmax(logits, -1, out=grad)
            loss = grad.gather(1, targets).log().mean()
            grad.scatter_add_(1, targets, minus_one)
            return loss

        return call

    return Kernel(name, 5.0 * elements, ELEMENT_BYTES * 2.0 * elements, build, "softmax")


def _attention(name: str, s: Shape) -> Kernel:
    shape = (s.batch, s.heads, s.sequence, s.head_size)
    elements = s.tokens * s.channels
    return _streaming(
        name, "attention", 4 * elements, 2.0 * s.tokens * s.sequence * s.channels, [shape] * 3,
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))


def _dropout(name: str, s: Shape) -> Kernel:
    elements = s.tokens * s.channels
    # It also writes a mask of one byte an element.
    return _streaming(name, "elementwise", 2 * elements, 2 * elements, [(s.tokens, s.channels)],
                      lambda torch, x: torch.native_dropout(x, 0.1, True), elements)


def _adamw(name: str, s: Shape) -> Kernel:
    """One layer's parameters in fp32: reads weight, gradient and two moments, writes all but the gradient."""
    count = 12 * s.channels**2 + 13 * s.channels

    def build(torch: Any, device: str) -> Call:
        weight = torch.nn.Parameter(torch.randn(count, device=device))
        weight.grad = torch.randn_like(weight)
        on_gpu = str(device).startswith("cuda")
        return torch.optim.AdamW([weight], fused=on_gpu, capturable=on_gpu).step

    return Kernel(name, 15.0 * count, 28.0 * count, build, "optimizer")


def gpt_kernels(s: Shape) -> list[Kernel]:
    """All kernels of a step of `s`, in the order of the trace; attention, dropout and adamw are not in the trace."""
    c, rows, vocabulary = s.channels, s.tokens, s.vocabulary
    heads, seq, head = s.batch * s.heads, s.sequence, s.head_size
    split = (s.batch, seq, 3, s.heads, head)
    merged = (s.batch, s.heads, seq, head)
    return [
        _embedding("00_embedding", s),
        _layernorm("01_layernorm", s, residual=False),
        _matmul("02_gemm_qkv", 3 * c, rows, c, "nt", bias=True),
        _permute("03_permute_qkv", split, (2, 0, 3, 1, 4)),
        _matmul("04_gemm_scores", seq, seq, head, "nt", batch=heads),
        _softmax("05_softmax", s),
        _matmul("06_gemm_context", head, seq, seq, "nn", batch=heads),
        _permute("07_unpermute", merged, (0, 2, 1, 3)),
        _matmul("08_gemm_attproj", c, rows, c, "nt", bias=True),
        _layernorm("09_residual_ln2", s, residual=True),
        _matmul("10_gemm_fc", 4 * c, rows, c, "nt", bias=True),
        _gelu("11_gelu", s),
        _matmul("12_gemm_fcproj", c, rows, 4 * c, "nt", bias=True),
        _layernorm("13_residual_ln1", s, residual=True),
        _matmul("14_gemm_logits", vocabulary, rows, c, "nt"),
        _classifier("15_classifier", s),
        _matmul("16_gemm_dlnf", c, rows, vocabulary, "nn"),
        _matmul("17_gemm_dwte", c, vocabulary, rows, "tn"),
        _layernorm_backward("18_layernorm_bwd_final", s),
        _gelu("19_gelu_recompute", s),
        _bias_backward("20_bias_fcproj", s, c),
        _bias_reduce("21_bias_reduce_fcproj", s),
        _matmul("22_gemm_dgelu", 4 * c, rows, c, "nn"),
        _gelu_backward("23_gelu_bwd", s),
        _matmul("24_gemm_dw_fcproj", 4 * c, c, rows, "tn"),
        _bias_backward("25_bias_fc", s, 4 * c),
        _matmul("26_gemm_dln2", c, rows, 4 * c, "nn"),
        _matmul("27_gemm_dw_fc", c, 4 * c, rows, "tn"),
        _layernorm_backward("28_layernorm_bwd_2", s),
        _bias_backward("29_bias_attproj", s, c),
        _bias_reduce("30_bias_reduce_attproj", s),
        _matmul("31_gemm_datt", c, rows, c, "nn"),
        _matmul("32_gemm_dw_attproj", c, c, rows, "tn"),
        _permute("33_unpermute_bwd", (s.batch, seq, s.heads, head), (0, 2, 1, 3)),
        _matmul("34_gemm_dp", seq, seq, head, "nt", batch=heads),
        _matmul("35_gemm_dv", head, seq, seq, "tn", batch=heads),
        _softmax_backward("36_softmax_bwd", s),
        _matmul("37_gemm_dq", head, seq, seq, "nn", batch=heads),
        _matmul("38_gemm_dk", head, seq, seq, "tn", batch=heads),
        _permute("39_permute_bwd", (3, *merged), (1, 3, 0, 2, 4)),
        _bias_backward("40_bias_qkv", s, 3 * c),
        _matmul("41_gemm_dln1", c, rows, 3 * c, "nn"),
        _matmul("42_gemm_dw_qkv", c, 3 * c, rows, "tn"),
        _layernorm_backward("43_layernorm_bwd_1", s),
        _streaming("44_wpe_bwd", "embedding", rows * c + seq * c, rows * c, [(s.batch, seq, c)], lambda torch, grad: grad.sum(0)),
        _embedding_backward("45_wte_bwd", s),
        _attention("attention", s),
        _dropout("dropout", s),
        _adamw("adamw", s),
    ]


def choose(kernels: list[Kernel], patterns: str) -> list[Kernel]:
    """Those whose name fits one of the comma-separated shell patterns, in their order; all if empty.

    Raises UsageError naming the first pattern that fits none.
    """
    if not patterns:
        return kernels
    wanted = patterns.split(",")
    for pattern in wanted:
        if not any(fnmatch.fnmatch(kernel.name, pattern) for kernel in kernels):
            raise UsageError(f"--kernels: '{pattern}' fits no kernel", "capture kernels lists them")
    return [k for k in kernels if any(fnmatch.fnmatch(k.name, pattern) for pattern in wanted)]
