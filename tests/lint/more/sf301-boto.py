# expect: SF301
import boto3
import surefoot as sf

@sf.step
def put(k: str, b: str) -> None:
    s3 = boto3.client("s3")
    s3.put_object(Bucket="b", Key=k, Body=b)
