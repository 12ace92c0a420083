"""Darkroom's decisions, without AWS, environment, clock or network: values in, values out."""
