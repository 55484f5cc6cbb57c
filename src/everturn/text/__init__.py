"""Text in, text out: terms, tokens, times, regular expressions, shell commands, diffs. Nothing here knows a conversation."""
