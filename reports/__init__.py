"""Tables, figures, Markdown and HTML from stored rows alone."""
