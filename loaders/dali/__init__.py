"""Images made by NVIDIA DALI, on a GPU or on CPUs; needs the extra `dali`.

choice.py   which backend makes the images of a loader, and why
backend.py  what DALI can make: of a chain, and of one image
course.py   crops, a resize and flips of one image as numbers
parts.py    how each step is done in DALI
recipe.py   the parts of a chain
graph.py    a recipe as a pipeline of DALI's
slot.py     one such pipeline, with one batch in the making
hand_over.py  what DALI has made as memory of a batch
darkroom.py batches of one column of images
develop.py  batches of files become batches of images
rows.py     the files of a column, without a copy
"""
