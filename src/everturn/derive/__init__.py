"""Pure functions of the model: no input, no output, no clock. Everything here can be done again from the raw layer."""
