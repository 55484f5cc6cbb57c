"""everturn: the memory of AI agents. Keep the bytes, derive everything else."""

__version__ = "0.1.0"
