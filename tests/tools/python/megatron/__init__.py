"""A stand-in for Megatron-LM: the functions that a training step goes through, under its names and with its calls.

As read in NVIDIA/Megatron-LM 00611e6 on 2026-11-23: train() calls train_step() of its own module with the optimizer as fourth argument;
that calls the schedule, which calls forward_step() and backward_step() of its module for each micro-batch, and then optimizer.step().
Evaluation calls the same schedule without gradients.
"""
