# expect: none
import boto3
from temporalio import activity
s3 = boto3.client("s3")
@activity.defn
def put(k: str, b: bytes) -> None:
    s3.put_object(Bucket="b", Key=k, Body=b)
