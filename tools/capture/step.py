"""A training step at default clocks: kernel trace (Kineto) and power log. Never changes a clock."""

import csv
import gzip
import os
import shutil
import tempfile
import threading
import time

POWER_COLUMNS = ["timestamp_s", "power_w", "energy_j", "core_mhz", "mem_mhz", "temperature_c", "throttle_reasons"]


class PowerLog:
    """Samples NVML every `period` s, Unix time, until stopped."""

    def __init__(self, gpu, path, period=0.02):
        self.gpu, self.path, self.period = gpu, path, period
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def _run(self):
        with open(self.path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(POWER_COLUMNS)
            while not self.stop.is_set():
                reading, energy = self.gpu.read(), self.gpu.energy_j()
                writer.writerow([f"{time.time():.6f}", f"{reading.power_w:.3f}",
                                 "" if energy is None else f"{energy:.3f}", reading.core_mhz, reading.mem_mhz,
                                 reading.temperature_c, reading.throttle])
                self.stop.wait(self.period)


def make_model(torch, layers, hidden, heads, vocabulary, sequence):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.fc, self.out = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (t.view(batch, length, heads, hidden // heads).transpose(1, 2)
                       for t in self.qkv(self.ln1(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(batch, length, hidden))
            return x + self.out(F.gelu(self.fc(self.ln2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, hidden), nn.Embedding(sequence, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)

        def forward(self, tokens, targets):
            x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, vocabulary).float(), targets.view(-1))

    return Gpt().to("cuda", torch.bfloat16)


def capture_step(gpu, torch, o, log=print):
    """Writes OUTPUT.json.gz and OUTPUT.power.csv; `o` has the options of the command line."""
    model = make_model(torch, o.layers, o.hidden, o.heads, o.vocabulary, o.sequence)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    shape = (o.batch, o.sequence)
    tokens = torch.randint(o.vocabulary, shape, device="cuda")
    targets = torch.randint(o.vocabulary, shape, device="cuda")
    record = torch.profiler.record_function

    def step():
        with record("forward"):
            loss = model(tokens, targets)
        with record("backward"):
            loss.backward()
        with record("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=o.steps)
    for _ in range(o.warm_up_steps):
        step()
    torch.cuda.synchronize()
    with PowerLog(gpu, o.output + ".power.csv"):
        with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as profiler:
            for _ in range(o.steps + 1):
                step()
                torch.cuda.synchronize()
                profiler.step()
        time.sleep(0.5)  # the tail of the last averaged power
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(o.output))) as folder:
        plain = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(o.output + ".json.gz", "wb") as target:
            shutil.copyfileobj(source, target)
    log(f"wrote {o.output}.json.gz and {o.output}.power.csv")
