"""The process around the core: launch checks, descriptors, the selector loop, worker threads, the way out."""
