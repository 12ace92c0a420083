"""`darkroom tenants …` and `darkroom keys …`."""
