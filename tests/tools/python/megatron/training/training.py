"""train() and train_step()."""

import torch

from megatron.core.pipeline_parallel.schedules import get_forward_backward_func


def evaluate(forward_step_func, data_iterator, model):
    with torch.no_grad():
        get_forward_backward_func()(forward_step_func=forward_step_func, data_iterator=data_iterator, model=model, num_microbatches=2,
                                    forward_only=True)


def train_step(forward_step_func, data_iterator, model, optimizer, opt_param_scheduler, config, forward_backward_func):
    optimizer.zero_grad()
    forward_backward_func(forward_step_func=forward_step_func, data_iterator=data_iterator, model=model, num_microbatches=config,
                          forward_only=False)
    optimizer.step()


def train(forward_step_func, model, optimizer, data_iterator, iterations, micro_batches):
    iteration = 0
    while iteration < iterations:
        train_step(forward_step_func, data_iterator, model, optimizer, None, micro_batches, get_forward_backward_func())
        iteration += 1
        evaluate(forward_step_func, data_iterator, model)
