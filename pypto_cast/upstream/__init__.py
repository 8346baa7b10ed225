"""Names of upstream pypto that change no bit, and upstream's files run unmodified."""
