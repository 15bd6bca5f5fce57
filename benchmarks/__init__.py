"""What is measured: speed and balance against rivals, one module for each page of results or part of one."""
