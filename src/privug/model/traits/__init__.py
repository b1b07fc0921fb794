"""What is known of each operation of the graph: one table, which every walker asks."""
