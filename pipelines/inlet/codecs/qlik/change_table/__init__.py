"""Change tables and load files of Qlik."""
