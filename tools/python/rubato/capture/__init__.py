"""Records clock sweeps and traces on a GPU, in the forms that rubato reads."""
