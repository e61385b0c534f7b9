"""Who decides whether an action may begin: small pure functions of the action and of where the run stands, asked in order."""
