//! Nothing: the sources of the dependency are what is wanted.
