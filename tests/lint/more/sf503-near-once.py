# expect: none
import requests
from datetime import timedelta
from temporalio import activity, workflow
from temporalio.common import RetryPolicy

@activity.defn
def pay(n: int) -> None:
    requests.post("https://b.test/pay", json={"n": n})

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(pay, 1, retry_policy=RetryPolicy(maximum_attempts=1))
