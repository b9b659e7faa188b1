// Precompiled headers belong to a target with a source.
