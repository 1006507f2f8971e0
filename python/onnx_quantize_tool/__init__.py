"""The names that scripts written for the Knight tool import; quench stands behind them."""
