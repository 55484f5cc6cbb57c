"""Jobs that look after an archive: forget, merge, verify, doctor."""
