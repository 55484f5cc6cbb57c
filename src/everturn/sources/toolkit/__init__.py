"""What readers of different formats share. A format may import this package and the contract, never another format."""
