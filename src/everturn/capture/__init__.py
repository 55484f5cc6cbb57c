"""Files into the archive: find, read, store.

`scan` compares the disk with the cursors, `file_reader` reads what is new, `intake` takes candidates in, `writer` stores
them in one transaction each and derives rows again, `sync` is the job. `spool`, `drain` and `hook_answer` serve the hook.
"""
