"""States from anywhere: whatever a policy is given, it answers with a plan or refuses in one line."""
