"""The schedule without pipelines."""


def get_forward_backward_func():
    return forward_backward_no_pipelining


def forward_step(forward_step_func, data_iterator, model):
    output_tensor, loss_func = forward_step_func(data_iterator, model)
    return loss_func(output_tensor)


def backward_step(input_tensor, output_tensor, output_tensor_grad):
    output_tensor.backward(output_tensor_grad)


def forward_backward_no_pipelining(*, forward_step_func, data_iterator, model, num_microbatches, forward_only):
    for _ in range(num_microbatches):
        output_tensor = forward_step(forward_step_func, data_iterator, model[0])
        if not forward_only:
            backward_step(None, output_tensor, None)
