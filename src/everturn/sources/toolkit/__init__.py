"""Parts shared by the readers of different formats. A format may import this package and the contract, never another format."""
