"""Tables of counts: rows that are alike are counted by class, not listed one by one."""
