"""Put everturn into an agent and take it out again, and run it in the background."""
