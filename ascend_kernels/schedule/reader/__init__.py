"""Reading the dumps of upstream's compiler."""
