"""What Darkroom decides, without AWS, environment, clock or network: values in, values out."""
