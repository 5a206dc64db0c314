"""What is done to pixels, with OpenCV, libjpeg-turbo, Pillow and torch: loaded where the first image is made.

run.py      steps over the images of a block
decide.py   what will be done to the images of a block, where another backend does it
picture.py  one image, read no sooner and no further than it must be
codec.py    files of images; content.py  what a file is by how it begins
jpeg.py     JPEG, also at smaller scales; upper_rows.py  without the rows below a part; segments.py  its head
pillow.py   other formats; modes.py  their colours; containers.py  chunks of PNG and WebP
exif.py     how a camera was held
resample.py part of an image at another size; fractional.py  where its edges lie between pixels
colour.py   brightness, contrast, saturation, hue, grey
levels.py   what becomes of a pixel by its value alone
blur.py     what becomes of it by those around it
warp.py     pixels with others around them, and pixels under an affine map
augment.py  the operations of augmentation policies
followers.py, beside.py, mask.py  boxes, keypoints and masks: moved; as columns of a block; in files
tensor.py   pixels as numbers of a tensor
"""
