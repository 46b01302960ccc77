"""Names of other libraries over opscope's engine: their programs run with one import changed."""
