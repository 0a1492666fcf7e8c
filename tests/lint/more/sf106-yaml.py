# expect: SF106
import yaml

def read_progress(path):
    try:
        with path.open() as f:
            data = yaml.safe_load(f)
    except yaml.YAMLError:
        data = None
    return data or {}
