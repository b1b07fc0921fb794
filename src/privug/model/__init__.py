"""What every step shares: random variables, the graph behind them, rows and tables, evaluation on a batch."""
