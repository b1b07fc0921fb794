"""Answers without sampling: enumeration and closed forms."""
