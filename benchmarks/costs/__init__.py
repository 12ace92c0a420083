"""A month's bill, what an image calls and writes and logs, and the bill of other ways to make variants."""
