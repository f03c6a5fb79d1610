"""What reaches a GPU: the driver's binding (nvml), one GPU (gpu), ways to set clocks (backends), who gives them back (guard), how long a change takes (latency)."""
