"""McMillan Industrial Group's data, made to order."""
