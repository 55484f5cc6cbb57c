"""The archive over the Agent Client Protocol: a client lists archived sessions of every agent and reads them."""
