"""A team's archive behind a server: identity, pushes of laptops, reading for people and their agents."""
