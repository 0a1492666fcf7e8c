# expect: SF107
import uuid
import surefoot as sf

ckpt = sf.Checkpoint(f"nightly-{uuid.uuid4()}")
