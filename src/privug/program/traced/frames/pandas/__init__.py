"""What stands for frames of pandas while a program is traced."""
