"""Getting conversations into the archive: find, read, store; and keeping them right afterwards.

`scan` compares what is on disk with the cursors, `pieces` reads what is new, `writing` puts it into the archive in one
transaction each, `sync` is the job that joins them. `deriving` makes derived rows again from the raw layer; `verify`,
`forget`, `merge` and `health` are jobs of their own.
"""
