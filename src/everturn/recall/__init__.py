"""The archive as a tool for a model: `conversation_recall` and the evidence tools, within a token budget."""
