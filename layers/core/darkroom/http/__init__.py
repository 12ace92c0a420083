"""What only the API needs: routes, problems, documents, how requests are read, and openapi.json."""
