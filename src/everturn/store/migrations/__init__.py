"""The numbered SQL steps of each engine, applied by `everturn.store.sql_store`."""
