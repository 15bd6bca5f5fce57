"""Windows from panes: partial states by pane and key, and running aggregates that cost a window its new panes."""
