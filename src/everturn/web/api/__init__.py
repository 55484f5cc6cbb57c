"""The operations of the JSON API, each with its parameters and the type of its answer; `web.addresses` lists them."""
