# expect: none
import json
def tool_result(progress):
    return {"role": "tool", "content": json.dumps(progress, default=str)}
