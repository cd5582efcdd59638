"""What predictors learn and say within a replay."""
