"""x"""
def sparsetrain_components(design): return ()
