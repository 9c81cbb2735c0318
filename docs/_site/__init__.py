"""What the site needs beside Sphinx and its extensions; used by docs/conf.py."""
