"""Find secrets in text and mask them. Pure functions, no input or output."""
