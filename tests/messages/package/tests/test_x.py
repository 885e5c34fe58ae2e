def f():
    raise RuntimeError("CUDA in a test")
