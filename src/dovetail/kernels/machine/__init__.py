"""What is free and when: processors that are counted, and nodes."""
