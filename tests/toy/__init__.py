"""A small made-up format that asks everything of the codec contract: `codec` reads it, `encode` writes it and knows
nothing of Inlet.
"""
