"""What is done to a running conversation to see whether it survives: scenes, a victim, a disk that lies."""
