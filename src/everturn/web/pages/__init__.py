"""The pages, one file each: a function that draws what was asked for."""
