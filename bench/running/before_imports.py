"""What the server that forks workers imports first, so that it knows the files before the rest.

It takes seconds to import the project. A file that is written in between may have been imported
with either of its texts, and then its hash is that of both.
"""

from bench.running.source_code import note_files

note_files()
