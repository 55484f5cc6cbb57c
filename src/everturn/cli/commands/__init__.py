"""One file per command. The first line of a file is the one-line help of its command."""
