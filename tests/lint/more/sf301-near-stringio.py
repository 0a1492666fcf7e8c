# expect: none
import io, csv
import surefoot as sf

@sf.step
def render(rows: list) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()
