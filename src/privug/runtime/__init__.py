"""Running tasks: in threads, forked processes or on a cluster, with what belongs to the whole process."""
