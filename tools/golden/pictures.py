#!/usr/bin/env python3
"""Writes tests/golden/pictures: small pictures in many forms, and what Pillow and transformers make of them.

    build/golden/bin/pip install pillow
    build/golden/bin/python tools/golden/pictures.py

golden.safetensors has I32 tensors decoded.NAME [height, width, 3], of each file as transformers' load_image reads it
(turned by EXIF data, in RGB), and resized.FILTER.HEIGHTxWIDTH of photo.png; F32 tensors processed.NAME [3, h, w], what
an image processor of transformers, with preprocessor_config.json of folder NAME, makes of photo.png.
"""
import pathlib
import struct
import zlib

import numpy
import PIL
import safetensors.torch
import torch
import transformers
from PIL import Image, ImageDraw, ImageOps
from transformers import BitImageProcessorPil, DeiTImageProcessorPil, ViTImageProcessorPil

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "pictures"
ORIENTATION = 0x0112


def photo(width=37, height=26):
    """Edges, gradients and noise."""
    rng = numpy.random.default_rng(7)
    y, x = numpy.mgrid[0:height, 0:width]
    channels = [x * 255 // width, y * 255 // height, (x * y) % 256]
    pixels = numpy.stack(channels, -1) + rng.integers(-20, 20, (height, width, 3))
    image = Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))
    draw = ImageDraw.Draw(image)
    draw.rectangle([5, 4, 14, 17], fill=(255, 0, 0))
    draw.ellipse([16, 6, 33, 22], outline=(255, 255, 255), fill=(0, 0, 90))
    return image


def turned_exif(orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def write_pictures():
    image = photo()
    image.save(FOLDER / "photo.png")
    image.save(FOLDER / "baseline.jpg", quality=85)
    image.save(FOLDER / "all-colours.jpg", quality=90, subsampling=0)
    image.save(FOLDER / "half-colours.jpg", quality=60, subsampling=1)
    image.save(FOLDER / "progressive.jpg", quality=75, progressive=True)
    image.convert("L").save(FOLDER / "grey.jpg", quality=80)
    image.convert("CMYK").save(FOLDER / "inks.jpg", quality=90)
    for orientation in range(2, 9):
        image.crop((0, 0, 13, 9)).save(FOLDER / f"turned-{orientation}.jpg", exif=turned_exif(orientation))
    image.crop((0, 0, 13, 9)).save(FOLDER / "turned.png", exif=turned_exif(6))
    image.convert("L").save(FOLDER / "grey.png")
    image.convert("1").save(FOLDER / "bits.png")
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=13).save(FOLDER / "palette.png", transparency=3)
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=3).save(FOLDER / "palette-2-bits.png", bits=2)
    alpha = Image.linear_gradient("L").resize(image.size)
    with_alpha = image.copy()
    with_alpha.putalpha(alpha)
    with_alpha.save(FOLDER / "alpha.png")
    with_alpha.convert("LA").save(FOLDER / "grey-alpha.png")


def write_16_bits(path, pixels, colour):
    """A PNG of 16 bits, which Pillow writes in grey alone."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 16, colour, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) +
                     chunk(b"IEND", b""))


def load(path):
    """As transformers.image_utils.load_image."""
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_pictures()
    tensors = {}
    for path in sorted(FOLDER.glob("*.[jp][pn]g")):
        if path.name.startswith("deep"):
            continue
        tensors[f"decoded.{path.name}"] = torch.tensor(numpy.array(load(path)).astype(numpy.int32))
    # Pillow cuts 16 bits of grey off at 255, and keeps the upper 8 of colours.
    deep = numpy.random.default_rng(3).integers(0, 65536, (6, 7, 3))
    for name, pixels, colour in [("deep.png", deep, 2), ("deep-grey.png", deep[..., 0], 0)]:
        write_16_bits(FOLDER / name, pixels, colour)
        upper = numpy.broadcast_to((pixels >> 8).reshape(6, 7, -1), (6, 7, 3))
        tensors[f"decoded.{name}"] = torch.tensor(upper.astype(numpy.int32))
    assert (numpy.array(load(FOLDER / "deep.png")) == tensors["decoded.deep.png"].numpy()).all()
    image = load(FOLDER / "photo.png")
    filters = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
               "lanczos": Image.Resampling.LANCZOS}
    for name, how in filters.items():
        for height, width in [(8, 8), (11, 5), (26, 9), (7, 37), (52, 61), (40, 12), (1, 1), (20, 61), (8, 35)]:
            pixels = numpy.array(image.resize((width, height), how)).astype(numpy.int32)
            tensors[f"resized.{name}.{height}x{width}"] = torch.tensor(pixels)
    crop = image.crop((6, 3, 31, 20)).resize((12, 12), Image.Resampling.BICUBIC)
    tensors["part"] = torch.tensor(numpy.array(crop).astype(numpy.int32))
    imagenet = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    processors = {
        "vit": ViTImageProcessorPil(size={"height": 16, "width": 16}),
        "deit": DeiTImageProcessorPil(size={"height": 20, "width": 20}, crop_size={"height": 16, "width": 16}, **imagenet),
        "bit": BitImageProcessorPil(size={"shortest_edge": 18}, crop_size={"height": 15, "width": 15}, **imagenet),
        "plain": ViTImageProcessorPil(size={"height": 9, "width": 14}, resample=1, do_normalize=False),
    }
    for name, processor in processors.items():
        processor.save_pretrained(FOLDER / name)
        pixels = processor(image, return_tensors="pt").pixel_values[0]
        tensors[f"processed.{name}"] = pixels.to(torch.float32).contiguous()
    versions = {"pillow": PIL.__version__, "transformers": transformers.__version__}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, FOLDER / "golden.safetensors", metadata=versions)


if __name__ == "__main__":
    main()
