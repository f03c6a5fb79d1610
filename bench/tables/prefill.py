#!/usr/bin/env python3
"""Prefill of Qwen2 1.5B on an A10 and an A100 PCIe 40 GB beside measured steps (EnergAIzer, one clock): time, energy, and the order of batches by energy per token.

Usage: prefill.py RUBATO DATA [--kernels fused]. DATA has the folder energaizer_a100. Measured steps are Hugging Face's (weights in bf16, attention
written out, no head); the model's are the eager kernels of the generator, or with --kernels fused those of a server. Steps bound by the host
(under 30 ms) and two broken rows (under 100 W) are left out.
"""
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPE = {"kind": "decoder", "source": "Qwen2 1.5B, config.json", "layers": 28, "hidden": 1536, "heads": 12, "kv_heads": 2, "ffn": 8960, "vocab": 151936, "context": 32768,
         "norm": "rmsnorm", "activation": "swiglu", "positions": "rope", "biases": False, "tied_embeddings": True}


SPECS = {"A10": "a10", "A100-PCIE-40GB": "a100-pcie-40gb"}


def main():
    rubato, data = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    kernels = "fused" if "--kernels" in sys.argv else "eager"
    with open(data / "energaizer_a100/one_clock.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["gpu"] in SPECS and row["model"] == "qwen2 qwen2-1p5b" and float(row["time_s"]) > 0.03
                and float(row["power_w"]) > 100]
    found = []
    with tempfile.TemporaryDirectory() as name:
        shape, step = Path(name) / "qwen2-1.5b.json", Path(name) / "step.json"
        shape.write_text(json.dumps({"schema": 1, "name": "qwen2-1.5b", **SHAPE}))
        for index, row in enumerate(rows):
            database = Path(name) / f"{index}.db"
            subprocess.run([rubato, "trace", "gen", shape, "--phase", "prefill", "--batch", row["batch"], "--seq", row["seq"], "--kernels", kernels, "-o", step], check=True, capture_output=True)
            done = subprocess.run([rubato, "explore", step, "--gpu", SPECS[row["gpu"]], "--clocks", f"mem={row['mem_mhz']} core={row['core_mhz']}", "--per", "run", "--slack", "any",
                                   "--db", database, "--quiet"], capture_output=True, text=True)
            assert done.returncode in (0, 1), done.stderr
            cell = json.loads(subprocess.run([rubato, "query", "--db", database,
                                              f"SELECT time_s, energy_j FROM v_clocks WHERE core_mhz = {row['core_mhz']}", "--json"], capture_output=True, text=True).stdout)[0]
            tokens = int(row["batch"]) * int(row["seq"])
            found.append((row["gpu"], int(row["seq"]), int(row["batch"]), cell["time_s"] / float(row["time_s"]) - 1, cell["energy_j"] / float(row["energy_j"]) - 1,
                          cell["energy_j"] / tokens, float(row["energy_j"]) / tokens))
    print("| GPU | tokens | batch | time % | energy % | mJ/token | measured |\n| --- | --- | --- | --- | --- | --- | --- |")
    for gpu, seq, batch, time, energy, ours, measured in sorted(found):
        print(f"| {gpu} | {seq} | {batch} | {100 * time:+.1f} | {100 * energy:+.1f} | {1000 * ours:.2f} | {1000 * measured:.2f} |")
    for gpu in SPECS:
        of_gpu = [f for f in found if f[0] == gpu]
        print(f"{gpu}, {len(of_gpu)} steps: mean of absolute errors: time {100 * statistics.mean(abs(f[3]) for f in of_gpu):.1f} %, energy {100 * statistics.mean(abs(f[4]) for f in of_gpu):.1f} %")
    for gpu, seq in sorted({f[:2] for f in found}):
        of_seq = [f for f in found if f[:2] == (gpu, seq)]
        if len({f[2] for f in of_seq}) > 1:
            print(f"{gpu}, {seq} tokens: order of batches, ours {[f[2] for f in sorted(of_seq, key=lambda f: f[5])]}, measured {[f[2] for f in sorted(of_seq, key=lambda f: f[6])]}")


if __name__ == "__main__":
    main()
