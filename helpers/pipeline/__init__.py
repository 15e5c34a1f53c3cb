"""The pipeline as software: what is declared, who runs it."""
